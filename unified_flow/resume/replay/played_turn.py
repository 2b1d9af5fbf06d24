"""A turn that is played: what its phases ask for is answered from the recording, in its order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import TypeVar, Unpack

from pydantic import BaseModel

from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import Limits
from unified_flow.engine.model_request import model_call, request_digest
from unified_flow.engine.phase_table import BY_NAME
from unified_flow.engine.routing import Step
from unified_flow.engine.services import Services
from unified_flow.errors import UnifiedFlowError, wire_name
from unified_flow.models.reply import parse_reply
from unified_flow.phases import recipe
from unified_flow.phases.context import ModelInputs
from unified_flow.resume.replay.recording import (
    RecordedFailure,
    RecordedReply,
    RecordedResumption,
    RecordedVisit,
    Recording,
)
from unified_flow.turns import events, results
from unified_flow.turns.events import Observed, this_process
from unified_flow.turns.fold import apply
from unified_flow.turns.results import PriorTurn, ToolRequest
from unified_flow.turns.sections import ToolDescription
from unified_flow.turns.turn import Turn

T = TypeVar("T", bound=BaseModel)


class RecordedFailureError(UnifiedFlowError):
    """The failure that the journal holds, where it happened then."""


class DivergedError(UnifiedFlowError):
    """The flow asks for what was not asked for then, so that there is no recorded answer."""


class PlayedTurn:
    """The context of each of its phases (`PhaseContext`), and how far they have come. `real` gives
    today's recipes, limits and tools, and the history of a turn that had not read it."""

    by_rules = False
    lacking: Mapping[str, str] = {}

    def __init__(self, recording: Recording, real: Services | None) -> None:
        self.turn = Turn(
            recording.turn_id,
            session_id=recording.session_id,
            user_id=recording.user_id,
            question=recording.question,
        )
        self.visits: list[RecordedVisit] = []
        self.failure: RecordedFailure | None = None
        # Without today's those that the recorded turn ran into.
        then = Limits().model_copy(update=recording.limits)
        self.limits = real.settings.limits if real is not None else then
        self._recording = recording
        self._real = real
        self._replies = defaultdict[str, deque[str]](deque)
        for visit in recording.visits:
            self._replies[visit.phase].extend(reply.text for reply in visit.replies)
        self._visit = RecordedVisit(phase="")
        self._calls = deque(call for visit in recording.visits for call in visit.calls)

    async def run(self, step: Step) -> None:
        """Play a visit of a phase; whatever it raises is the turn's failure."""
        phase, self._visit = step.phase, RecordedVisit(phase=step.phase)
        try:
            if step.limit is not None:
                raise step.limit
            self.phase = phase
            self.recipe = self._real.recipe(phase) if self._real else recipe.load(phase, None)
            output = await BY_NAME[phase].run(self.turn, self)
            number = self.turn.visit_number(phase)
            done = {"visit": number, "output": output, "duration_ms": 0.0}
            self._apply(events.PhaseCompleted(phase=phase, **done))
            self._visit.output = output
            self.visits.append(self._visit)
        except Exception as exc:  # noqa: BLE001 - whatever a phase raises is its failure
            said = redact_text(str(exc))
            self.failure = RecordedFailure(phase=phase, error_type=wire_name(exc), message=said)

    def resume(self, resumption: RecordedResumption) -> None:
        """The counters restart, and edits are put in place."""
        self._apply(
            events.TurnResumed(
                phase=resumption.phase,
                runner=this_process(),
                by="",
                via="replay",
                config_digest="",
                edited=resumption.standing,
            )
        )

    @property
    def is_small(self) -> bool:
        return self._real is not None and self._real.models.is_small(self.recipe.head)

    async def ask(
        self,
        output: type[T],
        *,
        by_rules: bool | None = None,
        stream: str | None = None,
        **inputs: Unpack[ModelInputs],
    ) -> T:
        most = self.limits.model_calls
        call = model_call(self.turn, self.phase, self.recipe, output, inputs, limit=most)
        if not self._replies[self.phase]:
            raise self._unrecorded(f"{self.phase} asks a model once more than it did then")
        reply, request = self._replies[self.phase].popleft(), request_digest(call)
        self._visit.replies.append(RecordedReply(text=reply, request_digest=request))
        self._apply(
            events.ModelCalled(
                phase=self.phase,
                model="recorded",
                request_digest=request,
                reply=reply,
                duration_ms=0.0,
            )
        )
        return parse_reply(reply, output)

    async def tools(self) -> tuple[ToolDescription, ...]:
        return self._real.toolbox.describe() if self._real is not None else ()

    async def call(self, place: int, request: ToolRequest) -> results.ToolResult:
        if not self._calls:
            raise self._unrecorded(f"the tool {request.tool} was not called then")
        then = self._calls.popleft()
        if (then.tool, then.args) != (request.tool, request.args):
            raise DivergedError(f"{then.tool} was called then with {then.args}, not {request!r}")
        if then.output is None:
            raise self._unrecorded(f"{then.tool} has no recorded result")
        return then.output

    async def history(self, most: int) -> tuple[PriorTurn, ...]:
        """What the first phase saw of the session: the home's, if it did not come so far."""
        if self.turn.history is None:
            seen, real = self._recording.history, self._real
            if seen is None and real is not None:
                turn_id, session_id = self.turn.turn_id, self.turn.session_id
                seen = tuple(real.sessions.recent(session_id, before=turn_id, limit=most))
            self._apply(events.HistoryRead(phase=self.phase, turns=seen or ()))
        return self.turn.history or ()

    async def search_history(self, query: str, most: int) -> list[PriorTurn]:
        return list(self._gathered().prior_turns)

    async def memories(self, query: str, most: int) -> list[results.Memory]:
        """All that the phase gathered. Had a model condensed it, it now fits without."""
        return list(self._gathered().memories)

    async def save(self, turn: Turn) -> results.Saved:
        return self._recorded_output(results.Saved, "the turn was not saved then")

    def _gathered(self) -> results.GatheredContext:
        return self._recorded_output(results.GatheredContext, "nothing was gathered then")

    def _recorded_output(self, kind: type[T], otherwise: str) -> T:
        for visit in self._recording.visits:
            if visit.completed and visit.phase == self.phase:
                return kind.model_validate(visit.output)
        raise self._unrecorded(otherwise)

    def _unrecorded(self, why: str) -> UnifiedFlowError:
        failed = self._recording.failed
        if failed is not None and failed.phase == self.phase and not failed.limit:
            return RecordedFailureError(f"{failed.error_type}: {failed.message}")
        return DivergedError(why)

    def _apply(self, event: Observed) -> None:
        self.turn = apply(self.turn, event)
