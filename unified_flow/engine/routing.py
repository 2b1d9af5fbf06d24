"""What comes next: a pure function of the turn (system.md, "How they turn", "Loops")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unified_flow.config.tables import Limits
from unified_flow.errors import LimitReachedError, Loop
from unified_flow.turns.turn import Turn


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
            return _bounded("planner", "planning_loop", counters.planning, limits.planning_loop)
        case "synthesis":
            return Step("validation")
        case "validation":
            assert sections.validation is not None
            if sections.validation.decision == "RETRY":
                return _bounded("planner", "retry", counters.retries - 1, limits.retry)
            if sections.validation.decision == "REVISE":
                return _bounded("synthesis", "revise", counters.revisions - 1, limits.revise)
            return Step("save")
        case _:
            return End("answered")


def _bounded(phase: str, loop: Loop, done: int, limit: int) -> Step:
    """One more round of `loop` after `done` of them, if the limit allows."""
    return Step(phase, LimitReachedError(loop, done, limit) if done >= limit else None)
