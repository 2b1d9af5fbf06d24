"""A recorded turn runs again, wholly or phase by phase, and is compared with how it went then.

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
    PlayedVisit,
    RecordedFailureError,
)
from unified_flow.resume.replay.recording import RecordedFailure, RecordedVisit, Recording

DIVERGED = DivergedError.__name__
RECORDED = RecordedFailureError.__name__


@dataclass(frozen=True)
class VisitComparison:
    """One visit of a phase, then and now.

    `asked_otherwise`: the model's prompt differs now. Only a replay of one phase can say so, since
    prompts hold how long a tool took.
    """

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
    recording: Recording,
    *,
    phase: str | None = None,
    real: Services | None = None,
    live: bool = False,
) -> ReplayResult:
    """Run the turn again, or only the visits of `phase`. `real` gives the recipes, the tools'
    descriptions and the history; without it only the answers are the same. `live` is refused: with
    it, tests that version 0.1 exported made the failed call for real."""
    if live:
        raise UnifiedFlowError(
            "a replay plays what was recorded, and makes no call for real",
            hint="to see whether what failed from outside is mended: interventions retry ID",
        )
    if phase is None:
        played = asyncio.run(_whole(recording, real))
        return _compared(recording, played.visits, played.failure)
    turns = asyncio.run(_one_phase(recording, phase, real))
    visits = [visit for turn in turns for visit in turn.visits]
    failure = next((turn.failure for turn in reversed(turns) if turn.failure), None)
    return _compared(_only(recording, phase), visits, failure, alone=real is not None)


async def _whole(recording: Recording, real: Services | None) -> PlayedTurn:
    played = PlayedTurn(recording, real)
    while played.failure is None:
        _resume_as_recorded(played, recording, len(played.visits))
        step = next_step(played.turn, played.limits)
        if not isinstance(step, Step):
            break
        await played.run(step)
    return played


async def _one_phase(recording: Recording, phase: str, real: Services | None) -> list[PlayedTurn]:
    """A turn for each visit of `phase`, which it runs from what stood before it."""
    turns = []
    for place, visit in enumerate(recording.visits):
        if not _playable(recording, visit, phase):
            continue
        played = PlayedTurn(recording.model_copy(update={"visits": (visit,)}), real)
        for number, before in enumerate(recording.visits[:place]):
            _resume_as_recorded(played, recording, number)
            played.complete(before.phase, before.output)
        _resume_as_recorded(played, recording, place)
        await played.run(Step(phase))
        turns.append(played)
    return turns


def _resume_as_recorded(played: PlayedTurn, recording: Recording, done: int) -> None:
    for resumption in recording.resumptions:
        if resumption.after == done:
            played.resume(resumption)


def _only(recording: Recording, phase: str) -> Recording:
    visits = tuple(visit for visit in recording.visits if _playable(recording, visit, phase))
    failed = recording.failed
    if failed is not None and (failed.phase != phase or failed.limit):
        failed = None
    return recording.model_copy(update={"visits": visits, "failed": failed})


def _playable(recording: Recording, visit: RecordedVisit, phase: str) -> bool:
    limited = recording.failed is not None and recording.failed.limit
    return visit.phase == phase and (visit.completed or not limited)


def _compared(
    recording: Recording,
    now: Sequence[PlayedVisit],
    failure: RecordedFailure | None,
    *,
    alone: bool = False,
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
        asked = tuple(reply.request_digest for reply in then[place].replies)
        what = "the same" if same else "different"
        otherwise = alone and visit.requests != asked
        compared.append(VisitComparison(visit.phase, same, what, asked_otherwise=otherwise))
    compared += _failures(recording, failure)
    often, before = Counter(v.phase for v in now), Counter(v.phase for v in then)
    further = frozenset(phase for phase in often if often[phase] > before[phase])
    return ReplayResult(tuple(compared), failure, further)


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
