"""A recorded turn runs again, and is compared with how it went then.

Nothing is written, and nothing is asked of models, tools or stores (`played_turn.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from unified_flow.engine.routing import Step, next_step
from unified_flow.engine.services import Services
from unified_flow.errors import UnifiedFlowError
from unified_flow.resume.replay.played_turn import (
    DivergedError,
    PlayedTurn,
    RecordedFailureError,
)
from unified_flow.resume.replay.recording import RecordedFailure, RecordedVisit, Recording

DIVERGED = DivergedError.__name__
RECORDED = RecordedFailureError.__name__


@dataclass(frozen=True)
class VisitComparison:
    """One visit of a phase, then and now. `asked_otherwise`: a model's prompt differs now."""

    phase: str
    same: bool
    what: str
    asked_otherwise: bool = False


@dataclass(frozen=True)
class ReplayResult:
    """`failure` is how it ends now, if a phase fails. `further` are phases that completed more
    often than in the recording."""

    visits: tuple[VisitComparison, ...]
    failure: RecordedFailure | None
    further: frozenset[str] = frozenset()

    @property
    def same(self) -> bool:
        return all(visit.same for visit in self.visits)

    @property
    def from_outside(self) -> bool:
        """The failure came from a model, a tool or a store, and could only be repeated."""
        return self.failure is not None and self.failure.error_type == RECORDED

    def fails_in(self, phase: str) -> bool:
        """It still fails there, and not for lack of a recorded answer: the flow is not mended."""
        failed = self.failure
        return failed is not None and failed.phase == phase and failed.error_type != DIVERGED

    def gets_past(self, phase: str) -> bool:
        """The failure in `phase` is mended: the phase completes, or the flow goes another way. A
        replay that asks for an unrecorded answer before it gets there proves nothing."""
        if phase in self.further or self.failure is None:
            return True
        return self.failure.phase != phase and all(visit.same for visit in self.visits[:-1])


def replay(
    recording: Recording, *, real: Services | None = None, live: bool = False
) -> ReplayResult:
    """Run the turn again. `real` gives the recipes, the tools' descriptions and the history;
    without it only the answers are the same. `live` is refused: with it, tests that version 0.1
    exported made the failed call for real."""
    if live:
        raise UnifiedFlowError(
            "a replay plays what was recorded, and makes no call for real",
            hint="to see whether what failed from outside is mended: interventions retry ID",
        )
    played = asyncio.run(_played(recording, real))
    return _compared(recording, played.visits, played.failure, prompts=real is not None)


async def _played(recording: Recording, real: Services | None) -> PlayedTurn:
    played = PlayedTurn(recording, real)
    while played.failure is None:
        for resumption in recording.resumptions:
            if resumption.after == len(played.visits):
                played.resume(resumption)
        step = next_step(played.turn, played.limits)
        if not isinstance(step, Step):
            break
        await played.run(step)
    return played


def _compared(
    recording: Recording,
    now: Sequence[RecordedVisit],
    failure: RecordedFailure | None,
    *,
    prompts: bool,
) -> ReplayResult:
    then = [visit for visit in recording.visits if visit.completed]
    compared = []
    for place in range(max(len(then), len(now))):
        if place >= len(now):
            compared.append(VisitComparison(then[place].phase, same=False, what="not reached"))
            continue
        visit = now[place]
        if place >= len(then) and recording.unfinished:
            break
        if place >= len(then) or then[place].phase != visit.phase:
            compared.append(VisitComparison(visit.phase, same=False, what="did not run then"))
            break
        same = _comparable(then[place].output) == _comparable(visit.output)
        before, asked = _requests(then[place]), _requests(visit)
        what, otherwise = "the same" if same else "different", prompts and before != asked
        compared.append(VisitComparison(visit.phase, same, what, asked_otherwise=otherwise))
    compared += _failures(recording, failure)
    further = frozenset(Counter(v.phase for v in now) - Counter(v.phase for v in then))
    return ReplayResult(tuple(compared), failure, further)


def _requests(visit: RecordedVisit) -> list[str]:
    return [reply.request_digest for reply in visit.replies]


def _failures(recording: Recording, now: RecordedFailure | None) -> list[VisitComparison]:
    then = recording.failed
    if then is None and now is None:
        return []
    if recording.unfinished and now is not None and now.error_type == DIVERGED:
        return [
            VisitComparison(now.phase, same=True, what="was stopped here, so nothing more is known")
        ]
    if now is None:
        assert then is not None
        return [VisitComparison(then.phase, same=False, what="failed then, and does not now")]
    if then is None:
        return [VisitComparison(now.phase, same=False, what=f"fails now: {now.message}")]
    recorded = now.error_type == RECORDED and now.phase == then.phase
    again = (then.phase, then.error_type, then.message) == (now.phase, now.error_type, now.message)
    same = recorded or again or (then.limit and now.limit and then.phase == now.phase)
    what = "fails the same way" if same else f"fails otherwise: {now.error_type}: {now.message}"
    return [VisitComparison(now.phase, same=same, what=what)]


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
