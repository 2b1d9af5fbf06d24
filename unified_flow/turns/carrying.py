"""Tool results that a resumed turn keeps: of calls that count as done, and under an edited plan."""

from __future__ import annotations

from unified_flow.turns import results
from unified_flow.turns.errors import JournalOrderError
from unified_flow.turns.events import TurnResumed
from unified_flow.turns.turn import Turn


def taken_as_done(
    turn: Turn, event: TurnResumed, done: dict[int, results.ToolResult]
) -> dict[int, results.ToolResult]:
    """What a person says was done has a result that says so: what the tool answered is lost."""
    plan = turn.sections.planner
    taken = dict(done)
    for write in turn.writes:
        if plan is None or write.done or write.call not in event.tools_done:
            continue
        for place, asked in enumerate(plan.tool_requests):
            if place not in taken and (asked.tool, asked.args) == (write.tool, write.args):
                taken[place] = results.ToolResult(
                    tool=asked.tool,
                    goal_id=asked.goal_id,
                    success=True,
                    result=f"done, as {event.by} says; what the tool answered is not known",
                    duration_ms=0.0,
                )
                break
    return taken


def moved(
    turn: Turn, event: TurnResumed, done: dict[int, results.ToolResult], new: results.Plan | None
) -> dict[int, results.ToolResult]:
    """Every result at the place where the edited plan makes the very request that it answered,
    so that no call is made again for standing elsewhere. Raises JournalOrderError for a result of
    no request."""
    old = turn.sections.planner
    if old is None or new is None:
        return {}
    if any(place >= len(old.tool_requests) for place in done):
        raise JournalOrderError(event, turn, "a tool answered what the plan does not ask for")
    left = [(old.tool_requests[place], result) for place, result in sorted(done.items())]
    places: dict[int, results.ToolResult] = {}
    for place, asked in enumerate(new.tool_requests):
        for known, result in left:
            if (known.tool, known.args) == (asked.tool, asked.args):
                places[place] = result.model_copy(update={"goal_id": asked.goal_id})
                left.remove((known, result))
                break
    return places
