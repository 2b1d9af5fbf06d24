"""A turn again, from its journal: each visit of a phase runs from where the turn stood then, and is
compared with how it went.

It leaves out visits that a person went back behind, and failed or interrupted ones that were
resumed. Nothing is written, and nothing is asked of models, tools or stores (`played_visit.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import Limits
from unified_flow.engine.routing import Step, next_step
from unified_flow.engine.services import Services
from unified_flow.errors import wire_name
from unified_flow.resume.replay.played_visit import (
    LIMIT_REACHED,
    DivergedError,
    PlayedVisit,
    RecordedFailureError,
    RecordedVisit,
)
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.fold import apply
from unified_flow.turns.turn import Turn

DIVERGED = DivergedError.__name__


@dataclass(frozen=True)
class VisitComparison:
    """One visit of a phase, then and now. `asked_otherwise`: a model's prompt differs now."""

    phase: str
    same: bool
    what: str
    asked_otherwise: bool = False


@dataclass(frozen=True)
class PlayedFailure:
    """How the visit that failed then fails now. Redacted. `from_outside`: it came from a model, a
    tool or a store, and could only be repeated."""

    phase: str
    error_type: str
    message: str
    from_outside: bool


@dataclass(frozen=True)
class ReplayResult:
    """`failure` is None if no phase failed then, and where its cause is mended: the phase completes
    now, or the flow goes another way. A visit that asks for what was not recorded proves
    nothing."""

    visits: tuple[VisitComparison, ...]
    failure: PlayedFailure | None = None

    @property
    def same(self) -> bool:
        return all(visit.same for visit in self.visits)


def replay(journal: Iterable[AnyEvent], *, real: Services | None = None) -> ReplayResult:
    """`real` gives today's recipes, limits, tools' descriptions and history; without it only the
    answers are the same, and a limit that was reached."""
    return asyncio.run(_replayed(journal, real))


async def _replayed(journal: Iterable[AnyEvent], real: Services | None) -> ReplayResult:
    turn, visits = _recorded(journal)
    reached = turn.failure.limit if turn.failure else None
    then = Limits().model_copy(update={reached.loop: reached.limit} if reached else {})
    limits = real.settings.limits if real is not None else then
    compared, failure = list[VisitComparison](), None
    for visit, ended in zip(visits, turn.visits, strict=True):
        stopped = visit is visits[-1] and ended.status in ("running", "interrupted")
        failed = visit is visits[-1] and turn.failure is not None
        if stopped or failed or ended.status == "completed":
            comparison, failure = await _compared(visit, limits, real)
            compared.append(comparison)
    step = next_step(turn, limits)
    if turn.status in ("answered", "clarify") and turn.failure is None and isinstance(step, Step):
        compared.append(VisitComparison(step.phase, same=False, what="did not run then"))
    return ReplayResult(tuple(compared), failure if turn.failure else None)


def _recorded(journal: Iterable[AnyEvent]) -> tuple[Turn, list[RecordedVisit]]:
    """The turn at its end, and what happened in each of its `visits`."""
    turn, visits = Turn(), list[RecordedVisit]()
    for event in journal:
        before, turn = turn, apply(turn, event)
        if len(turn.visits) > len(before.visits):
            visits.append(RecordedVisit(turn.visits[-1].phase, before))
        if visits:
            visits[-1].events.append(event)
    return turn, visits


async def _compared(
    visit: RecordedVisit, limits: Limits, real: Services | None
) -> tuple[VisitComparison, PlayedFailure | None]:
    """The visit then and now, and how it fails now, if it does."""
    step = next_step(visit.before, limits)
    if not isinstance(step, Step) or step.phase != visit.phase:
        return VisitComparison(visit.phase, same=False, what="not reached"), None
    played = PlayedVisit(visit, limits, real)
    output, failure, otherwise = None, None, False
    try:
        if step.limit is not None:
            raise step.limit
        output = await played.run()
        otherwise = real is not None and visit.output is not None and played.asked_otherwise
    except Exception as exc:  # noqa: BLE001 - whatever a phase raises is its failure
        outside, said = isinstance(exc, RecordedFailureError), redact_text(str(exc))
        failure = PlayedFailure(visit.phase, wire_name(exc), said, outside)
    same, what = _difference(visit, output, failure)
    return VisitComparison(visit.phase, same, what, asked_otherwise=otherwise), failure


def _difference(
    visit: RecordedVisit, output: Any, failure: PlayedFailure | None
) -> tuple[bool, str]:
    """Whether the visit goes as it went then, and in words."""
    then = visit.failure
    if then is not None and failure is not None:
        now = failure.error_type
        again = (then.error_type, then.error_message) == (now, failure.message)
        if failure.from_outside or again or {then.error_type, now} <= LIMIT_REACHED:
            return True, "fails the same way"
        return False, f"fails otherwise: {now}: {failure.message}"
    if then is not None:
        return False, "failed then, and does not now"
    if visit.output is None and (failure is None or failure.error_type == DIVERGED):
        return True, "was stopped here, so nothing more is known"
    if failure is not None:
        return False, f"fails now: {failure.message}"
    same = _comparable(visit.output) == _comparable(output)
    return same, "the same" if same else "different"


def _comparable(output: Any) -> Any:
    """An output without its durations and without what follows from the search or the history: a
    citation is its source and quote, and the words of the conversation are left out."""
    plain = to_jsonable_python(output)
    if isinstance(plain, list):
        return [{k: v for k, v in item.items() if k != "duration_ms"} for item in plain]
    if isinstance(plain, dict) and "citations" in plain:
        named = [(each["source"], each["quote"]) for each in plain["citations"]]
        return {**plain, "citations": named}
    if isinstance(plain, dict):
        return {key: value for key, value in plain.items() if key != "conversation"}
    return plain
