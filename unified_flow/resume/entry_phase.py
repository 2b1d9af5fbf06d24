"""Where a turn goes on: a pure function of the turn and of what the person asks for."""

from __future__ import annotations

from dataclasses import replace

from unified_flow.config.tables import Limits
from unified_flow.engine.routing import End, next_step
from unified_flow.errors.turns import NotResumableError
from unified_flow.phases import NAMES
from unified_flow.turns.events import Write
from unified_flow.turns.turn import Counters, Turn

END = "end"
REPEATS_TOOLS = NAMES[: NAMES.index("coordinator") + 1]


def entry_phase(turn: Turn, limits: Limits, from_phase: str | None) -> str:
    """The phase that runs first, or END for a turn that lacks nothing but its last line. Raises
    NotResumableError."""
    step = next_step(replace(turn, counters=Counters()), limits)
    following = END if isinstance(step, End) else step.phase
    if from_phase is not None:
        _must_be_reached(turn, from_phase, following)
    elif turn.status == "silenced" and not turn.unchecked:
        raise NotResumableError(
            f"turn {turn.turn_id} was silenced: {turn.error_message}",
            hint="once the rules let it pass: "
            f"unified-flow resume {turn.turn_id} --from {following}",
        )
    elif turn.status == "abandoned":
        raise NotResumableError(
            f"turn {turn.turn_id} was abandoned",
            hint=f"to take it up again: unified-flow resume {turn.turn_id} --from {following}",
        )
    elif following == END and turn.status in ("answered", "clarify"):
        raise NotResumableError(
            f"turn {turn.turn_id} has nothing left to do: it is {_ended(turn)}",
            hint=f"to run a part again: unified-flow resume {turn.turn_id} --from PHASE",
        )
    return from_phase or following


def _must_be_reached(turn: Turn, phase: str, following: str) -> None:
    if phase not in NAMES:
        raise NotResumableError(
            f"there is no phase {phase!r}", hint=f"the phases are {', '.join(NAMES)}"
        )
    if phase != following and turn.first_visit(phase) is None:
        ran = dict.fromkeys(v.phase for v in turn.visits if v.status != "dropped")
        stands = "at its end" if following == END else f"before {following}"
        raise NotResumableError(
            f"turn {turn.turn_id} has not come to {phase}; it stands {stands}",
            hint=f"it can go back to {', '.join(ran)}" if ran else "leave out --from",
        )


def _ended(turn: Turn) -> str:
    return "answered and saved" if turn.status == "answered" else "answered with a question back"


def writes_at_stake(turn: Turn, start: str, *, rewound: bool) -> list[Write]:
    """Calls of tools that write which would, or might, have their effect a second time if the turn
    went on at `start`."""
    if rewound and start in REPEATS_TOOLS:
        return list(turn.writes)
    return turn.unfinished_writes


def must_not_write_twice(turn: Turn, start: str, *, rewound: bool, tools_done: bool) -> None:
    """`tools_done` counts the calls as done. Raises NotResumableError."""
    writes = writes_at_stake(turn, start, rewound=rewound)
    planned = all(_is_planned(turn, write) for write in writes)
    if not writes or (tools_done and planned and not rewound):
        return
    begun = [write for write in writes if not write.done]
    names = ", ".join(dict.fromkeys(write.tool for write in begun or writes))
    said = (
        f"{names} had begun to write when turn {turn.turn_id} stopped; whether it did is unknown"
        if begun
        else f"{names} has written in turn {turn.turn_id}, and would be asked to again"
    )
    # Going back makes the call again, so that there is nothing to count as done.
    counted = "without --from, --tools-done" if rewound else "--tools-done"
    otherwise = f"; {counted} counts it as done" if begun and planned else ""
    raise NotResumableError(
        said,
        hint=f"see whether the effect is there: --rerun-tools lets the call run again{otherwise}",
    )


def _is_planned(turn: Turn, write: Write) -> bool:
    """Whether the plan asks for this very call, so that it can count as done. The plan of a call in
    a damaged part of the journal may be lost with it."""
    plan = turn.sections.planner
    asked = plan.tool_requests if plan is not None else ()
    return any((request.tool, request.args) == (write.tool, write.args) for request in asked)
