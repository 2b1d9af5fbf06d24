"""What comes next: a pure function of the turn (system.md, "How they turn", "Loops")."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from unified_flow.config.tables import Limits
from unified_flow.errors import LimitReachedError, Loop
from unified_flow.turns.results import Plan, Verdict
from unified_flow.turns.turn import Turn

_SHOWN = 100  # characters of a tool's arguments


@dataclass(frozen=True)
class Step:
    """The phase to run next; with `limit`, the phase that may not run any more."""

    phase: str
    limit: LimitReachedError | None = None


@dataclass(frozen=True)
class End:
    status: Literal["answered", "clarify"]


def next_step(turn: Turn, limits: Limits) -> Step | End:
    sections, counters = turn.sections, turn.counters
    match turn.completed:
        case None:
            return Step("query_analyzer")
        case "query_analyzer":
            return Step("reflection")
        case "reflection":
            assert sections.reflection is not None
            clear = sections.reflection.decision == "PROCEED"
            return Step("context_gatherer") if clear else End("clarify")
        case "context_gatherer":
            return Step("planner")
        case "planner":
            assert sections.planner is not None
            if sections.planner.route == "clarify":
                return End("clarify")
            return Step(sections.planner.route)
        case "coordinator":
            return _bounded(
                "planner", "planning_loop", counters.planning, limits.planning_loop, turn
            )
        case "synthesis":
            return Step("validation")
        case "validation":
            assert sections.validation is not None
            if sections.validation.decision == "RETRY":
                return _bounded("planner", "retry", counters.retries - 1, limits.retry, turn)
            if sections.validation.decision == "REVISE":
                return _bounded("synthesis", "revise", counters.revisions - 1, limits.revise, turn)
            return Step("save")
        case _:
            return End("answered")


def _bounded(phase: str, loop: Loop, done: int, limit: int, turn: Turn) -> Step:
    """One more round of `loop` after `done` of them, if the limit allows."""
    if done < limit:
        return Step(phase)
    return Step(phase, LimitReachedError(loop, done, limit, _rounds(loop, turn)))


def _rounds(loop: Loop, turn: Turn) -> list[str]:
    """What each round of a loop looked up, or was sent back for."""
    if loop == "planning_loop":
        plans = [visit.before.planner for visit in turn.visits if visit.phase == "coordinator"]
        return [_requests(plan) for plan in plans if plan is not None]
    again = "synthesis" if loop == "revise" else "planner"
    before = [visit.before.validation for visit in turn.visits if visit.phase == again]
    decision = "REVISE" if loop == "revise" else "RETRY"
    rounds: list[Verdict] = []
    for verdict in [*before, turn.sections.validation]:
        seen = any(verdict is each for each in rounds)  # the planner may run twice in a round
        if verdict is not None and verdict.decision == decision and not seen:
            rounds.append(verdict)
    return ["; ".join(each.issues or each.hints) or each.decision for each in rounds]


def _requests(plan: Plan) -> str:
    asked = (f"{each.tool} {json.dumps(each.args)[:_SHOWN]}" for each in plan.tool_requests)
    return ", ".join(asked)
