"""The replay itself: the same loop, over stand-ins, in a home of its own."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from unified_flow.engine.boundary import run_phase
from unified_flow.engine.routing import Step, next_step
from unified_flow.engine.services import Services
from unified_flow.errors import UnifiedFlowError
from unified_flow.phases.errors import PhaseError
from unified_flow.policies import FailFast
from unified_flow.resume.replay.differences import ReplayResult, compare
from unified_flow.resume.replay.recording import RecordedVisit, Recording
from unified_flow.resume.replay.stand_ins import (
    RecordedMemory,
    RecordedModel,
    RecordedModels,
    RecordedSessions,
    RecordedTools,
)
from unified_flow.turns.events import (
    Observed,
    PhaseCompleted,
    TurnResumed,
    TurnStarted,
    this_process,
)
from unified_flow.turns.fold import OUTPUT
from unified_flow.turns.in_memory_store import InMemoryTurnStore
from unified_flow.turns.ledger import Ledger
from unified_flow.wiring import wire

_playing = ContextVar("playing", default=False)


def _is_not_replayed(_: logging.LogRecord) -> bool:
    """A replayed failure is not logged; those of other threads are."""
    return not _playing.get()


logging.getLogger("unified_flow").addFilter(_is_not_replayed)


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
    playing = _playing.set(True)
    try:
        with tempfile.TemporaryDirectory(prefix="replay-") as folder:
            if phase is None:
                services = _services(Path(folder), recording, real)
                return compare(recording, asyncio.run(_played(services, recording)))
            now = asyncio.run(_one_phase(Path(folder), recording, phase, real))
            return compare(_only(recording, phase), now, alone=real is not None)
    finally:
        _playing.reset(playing)


def _only(recording: Recording, phase: str) -> Recording:
    visits = tuple(visit for visit in recording.visits if _playable(recording, visit, phase))
    failed = recording.failed
    if failed is not None and (failed.phase != phase or failed.limit):
        failed = None
    return recording.model_copy(update={"visits": visits, "failed": failed})


def _playable(recording: Recording, visit: RecordedVisit, phase: str) -> bool:
    limited = recording.failed is not None and recording.failed.limit
    return visit.phase == phase and (visit.completed or not limited)


def _services(home: Path, recording: Recording, real: Services | None) -> Services:
    model = RecordedModel(recording)
    # A configured model, so that an address in the environment does not lack one.
    turns = InMemoryTurnStore()
    services = wire(home, model=model.name, extra_models={model.name: model}, tools=[], turns=turns)
    settings = services.settings
    if real is not None:
        recipes = real.recipes if real.recipes.is_dir() else None
        own = real.settings
        settings = settings.model_copy(update={"recipes": recipes, "limits": own.limits})
    elif recording.limits:
        limits = settings.limits.model_copy(update=recording.limits)
        settings = settings.model_copy(update={"limits": limits})
    return replace(
        services,
        settings=settings,
        models=RecordedModels(model, real.models if real is not None else None),
        toolbox=RecordedTools(recording, real.toolbox.describe() if real is not None else ()),
        documents=None,
        sessions=RecordedSessions(recording, real.sessions if real is not None else None),
        memory=RecordedMemory(recording),
        policy=FailFast(),  # recorded answers are never slow, and nothing is retried
    )


async def _played(services: Services, recording: Recording) -> list[Observed]:
    events: list[Observed] = []
    async with await _begin(services, recording, events) as ledger:
        with suppress(PhaseError):
            while True:
                done = sum(isinstance(event, PhaseCompleted) for event in events)
                await _resume_as_recorded(ledger, recording, done)
                step = next_step(ledger.turn, services.settings.limits)
                if not isinstance(step, Step):
                    return events
                await run_phase(step, ledger, services)
    return events


async def _one_phase(
    home: Path, recording: Recording, phase: str, real: Services | None
) -> list[Observed]:
    """Each visit of `phase`, from the turn as it was before it."""
    played: list[Observed] = []
    for place, visit in enumerate(recording.visits):
        if not _playable(recording, visit, phase):
            continue
        services = _services(home, recording.model_copy(update={"visits": (visit,)}), real)
        seen: list[Observed] = []
        async with await _begin(services, recording, seen) as ledger:
            for number, before in enumerate(recording.visits[:place]):
                await _resume_as_recorded(ledger, recording, number)
                await ledger.record(_completed(before, number))
            await _resume_as_recorded(ledger, recording, place)
            seen.clear()
            with suppress(PhaseError):
                await run_phase(Step(phase), ledger, services)
        played += seen
    return played


async def _begin(services: Services, recording: Recording, seen: list[Observed]) -> Ledger:
    def first(turn_id: int) -> TurnStarted:
        return TurnStarted(
            turn_id=turn_id,
            session_id=recording.session_id,
            request_id="replay",
            user_id=recording.user_id,
            channel=None,
            question=recording.question,
            policy="fail_fast",
            config_digest="",
        )

    return await Ledger.create(services.turns, first, seen.append)


async def _resume_as_recorded(ledger: Ledger, recording: Recording, done: int) -> None:
    """Repeat a recorded resumption: the counters restart, and edits are put in place."""
    for resumption in recording.resumptions:
        if resumption.after == done:
            event = TurnResumed(
                phase=resumption.phase,
                runner=this_process(),
                by="",
                via="replay",
                config_digest="",
                edited=resumption.standing,
            )
            await ledger.record(event)


def _completed(visit: RecordedVisit, number: int) -> PhaseCompleted:
    output = OUTPUT[visit.phase].validate_python(visit.output)
    return PhaseCompleted(phase=visit.phase, visit=number, output=output, duration_ms=0.0)
