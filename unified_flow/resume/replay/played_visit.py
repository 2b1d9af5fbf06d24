"""A visit of a phase that is played: what the phase asks for is answered from the journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel

from unified_flow.config.tables import Limits
from unified_flow.engine.model_request import model_call, request_digest
from unified_flow.engine.phase_table import BY_NAME
from unified_flow.engine.services import Services
from unified_flow.errors import UnifiedFlowError
from unified_flow.models.reply import parse_reply
from unified_flow.phases import recipe
from unified_flow.phases.context import ModelInputs
from unified_flow.turns.events import (
    AnyEvent,
    HistoryRead,
    ModelCalled,
    PhaseFailed,
    ToolCompleted,
    ToolStarted,
)
from unified_flow.turns.fold import apply
from unified_flow.turns.results import (
    GatheredContext,
    Memory,
    PriorTurn,
    Saved,
    ToolRequest,
    ToolResult,
)
from unified_flow.turns.sections import ToolDescription
from unified_flow.turns.turn import Turn

T = TypeVar("T", bound=BaseModel)
COORDINATOR = "coordinator"
LIMIT_REACHED = frozenset({"LoopLimitError", "LimitReachedError"})  # the latter in older journals


class RecordedFailureError(UnifiedFlowError):
    """The failure that the journal holds, where it happened then."""


class DivergedError(UnifiedFlowError):
    """The flow asks for what was not asked for then, so that there is no recorded answer."""


@dataclass
class RecordedVisit:
    """`before` is the turn as it stood, `events` what the journal says of the visit."""

    phase: str
    before: Turn
    events: list[AnyEvent] = field(default_factory=list)

    @property
    def output(self) -> Any:
        """None if the phase has not completed."""
        return next((e.output for e in self.events if e.event == "phase_completed"), None)

    @property
    def failure(self) -> PhaseFailed | None:
        return next((e for e in self.events if e.event == "phase_failed"), None)

    @property
    def model_calls(self) -> list[ModelCalled]:
        return [event for event in self.events if event.event == "model_called"]


class PlayedVisit:
    """The context of the phase (`PhaseContext`). `real` gives today's recipes and tools, and the
    history of a turn that had not read it. `asked_otherwise`: a model's prompt differs now."""

    by_rules = False
    lacking: Mapping[str, str] = {}

    def __init__(self, visit: RecordedVisit, limits: Limits, real: Services | None) -> None:
        self.asked_otherwise = False
        self._visit = visit
        self._turn = visit.before
        self._limits = limits
        self._real = real
        failed = visit.failure
        # The search beside the phase failed, whatever a model had said by then.
        beside = failed is not None and failed.tool is not None and failed.phase != COORDINATOR
        self._calls = deque([] if beside else visit.model_calls)

    async def run(self) -> Any:
        """The phase's output. Raises what it raises."""
        phase = self._visit.phase
        self.recipe = self._real.recipe(phase) if self._real else recipe.load(phase, None)
        return await BY_NAME[phase].run(self._turn, self)

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
        phase, most = self._visit.phase, self._limits.model_calls
        call = model_call(self._turn, phase, self.recipe, output, inputs, limit=most)
        if not self._calls:
            raise self._unrecorded(f"{phase} asks a model once more than it did then")
        then = self._calls.popleft()
        if then.request_digest:
            self.asked_otherwise |= then.request_digest != request_digest(call)
        self._turn = apply(self._turn, then)
        return parse_reply(then.reply, output)

    async def tools(self) -> tuple[ToolDescription, ...]:
        return self._real.toolbox.describe() if self._real is not None else ()

    async def call(self, place: int, request: ToolRequest) -> ToolResult:
        if place in self._turn.tools_done:
            return self._turn.tools_done[place]
        for event in self._visit.events:
            match event:
                case ToolStarted(call=then, tool=tool, args=args) if then == place:
                    if (tool, args) != (request.tool, request.args):
                        raise DivergedError(f"{tool} was called then with {args}, not {request!r}")
                case ToolCompleted(call=then) if then == place:
                    return ToolResult.model_validate(event.output)
        raise self._unrecorded(f"{request.tool} has no recorded result")

    async def history(self, most: int) -> tuple[PriorTurn, ...]:
        """What the phase saw of the session: the home's, if it did not come so far."""
        if self._turn.history is None:
            read = next((e for e in self._visit.events if e.event == "history_read"), None)
            if read is None:
                read = HistoryRead(phase=self._visit.phase, turns=self._known_today(most))
            self._turn = apply(self._turn, read)
        return self._turn.history or ()

    def _known_today(self, most: int) -> list[PriorTurn]:
        turn, real = self._turn, self._real
        if real is None:
            return []
        return real.sessions.recent(turn.session_id, before=turn.turn_id, limit=most)

    async def search_history(self, query: str, most: int) -> list[PriorTurn]:
        return list(self._gathered().prior_turns)

    async def memories(self, query: str, most: int) -> list[Memory]:
        """All memories that the phase gathered. Had a model condensed it, it now fits without."""
        return list(self._gathered().memories)

    async def save(self, turn: Turn) -> Saved:
        return self._recorded_output(Saved, "the turn was not saved then")

    def _gathered(self) -> GatheredContext:
        return self._recorded_output(GatheredContext, "nothing was gathered then")

    def _recorded_output(self, kind: type[T], otherwise: str) -> T:
        if self._visit.output is None:
            raise self._unrecorded(otherwise)
        return kind.model_validate(self._visit.output)

    def _unrecorded(self, why: str) -> UnifiedFlowError:
        failed = self._visit.failure
        if failed is not None and failed.error_type not in LIMIT_REACHED:
            return RecordedFailureError(f"{failed.error_type}: {failed.error_message}")
        return DivergedError(why)
