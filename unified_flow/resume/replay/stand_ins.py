"""What stands in for models, tools and stores: they answer from the recording, in its order."""

from __future__ import annotations

from collections import deque

from pydantic import BaseModel

from unified_flow.errors import UnifiedFlowError
from unified_flow.models import Model, ModelCall, ModelReply
from unified_flow.models.registry import ModelChoice, ModelRegistry
from unified_flow.resume.replay.recording import Call, RecordedFailure, Recording
from unified_flow.tools import Arguments, Tool, ToolOutput
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.memory import Memories, MemoryRecord
from unified_flow.turns.results import GatheredContext, Memory, PriorTurn, Saved, ToolRequest
from unified_flow.turns.sections import ToolDescription
from unified_flow.turns.sessions import Sessions
from unified_flow.turns.turn import Turn


class RecordedFailureError(UnifiedFlowError):
    """The failure that the journal holds, where it happened then."""


class DivergedError(UnifiedFlowError):
    """The flow asks for what was not asked for then, so that there is no recorded answer."""


def _fail(failed: RecordedFailure | None, phase: str, otherwise: str) -> UnifiedFlowError:
    if failed is not None and failed.phase == phase and not failed.limit:
        return RecordedFailureError(f"{failed.error_type}: {failed.message}")
    return DivergedError(otherwise)


class RecordedModel:
    name = "recorded"

    def __init__(self, recording: Recording) -> None:
        self._failed = recording.failed
        self._replies = {visit.phase: deque[str]() for visit in recording.visits}
        for visit in recording.visits:
            self._replies[visit.phase].extend(reply.text for reply in visit.replies)

    async def complete(self, call: ModelCall) -> ModelReply:
        replies = self._replies.get(call.phase)
        if not replies:
            said = f"{call.phase} asks a model once more than it did then"
            raise _fail(self._failed, call.phase, said)
        return ModelReply(replies.popleft())

    async def aclose(self) -> None:
        return


class RecordedModels(ModelRegistry):
    """Every role is played by the recorded model, as small as the one of `real`."""

    def __init__(self, model: Model, real: ModelRegistry | None) -> None:
        self._model = model
        self._real = real

    def name_of(self, choice: ModelChoice, *, by_rules: bool | None = None) -> str | None:
        return None if choice.role == "none" else self._model.name

    def is_small(self, choice: ModelChoice) -> bool:
        return self._real is not None and self._real.is_small(choice)

    def named(self, name: str) -> Model:
        return self._model

    async def aclose(self) -> None:
        return


class Anything(Arguments):
    """The arguments were checked when the call was recorded."""


class RecordedTools(Toolbox):
    def __init__(self, recording: Recording, described: tuple[ToolDescription, ...] = ()) -> None:
        super().__init__()
        self._failed = recording.failed
        self._described = described
        self._calls = deque(call for visit in recording.visits for call in visit.calls)

    def describe(self, *, personal: bool = True) -> tuple[ToolDescription, ...]:
        return self._described

    def check(self, request: ToolRequest) -> tuple[Tool, BaseModel]:
        if not self._calls:
            raise _fail(self._failed, "coordinator", f"the tool {request.tool} was not called then")
        call = self._calls.popleft()
        if (call.tool, call.args) != (request.tool, request.args):
            raise DivergedError(f"{call.tool} was called then with {call.args}, not {request!r}")

        async def run(args: BaseModel) -> ToolOutput:
            return self._answer(call)

        return Tool(call.tool, "", Anything, frozenset(), run), Anything()

    def _answer(self, call: Call) -> ToolOutput:
        if call.output is None:
            raise _fail(self._failed, "coordinator", f"{call.tool} has no recorded result")
        return ToolOutput(call.output.result, list(call.output.claims))


class RecordedSessions(Sessions):
    """What was found is found again, and what was saved is what is saved."""

    def __init__(self, recording: Recording, real: Sessions | None) -> None:
        self._real = real
        self._recording = recording

    def recent(self, session_id: str, *, before: int, limit: int) -> list[PriorTurn]:
        """What the first phase was told of the session: the home's, if it did not come so far."""
        if self._recording.history is not None:
            return list(self._recording.history)
        if self._real is None:
            return []
        return self._real.recent(session_id, before=self._recording.turn_id, limit=limit)

    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        return list(_gathered(self._recording).prior_turns)

    def save(self, turn: Turn) -> Saved:
        for visit in self._recording.visits:
            if visit.completed and visit.phase == "save":
                return Saved.model_validate(visit.output)
        raise _fail(self._recording.failed, "save", "the turn was not saved then")

    @property
    def place(self) -> str:
        return "the recording"

    def take_back(self, turn: Turn) -> int:
        return 0

    def user_of(self, session_id: str) -> str | None:
        return None

    def answered(self, session_id: str, request_id: str, user_id: str, question: str) -> int | None:
        return None

    def close(self) -> None:
        return


class RecordedMemory(Memories):
    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def search(self, user_id: str, text: str, *, limit: int) -> list[Memory]:
        return list(_gathered(self._recording).memories)

    def counted(self) -> tuple[int, int]:
        return 0, 0

    def forget(self, user_id: str, turn_id: int) -> list[MemoryRecord]:
        return []


def _gathered(recording: Recording) -> GatheredContext:
    """What the phase gathered. Had a model condensed it, it now fits without."""
    for visit in recording.visits:
        if visit.completed and visit.phase == "context_gatherer":
            return GatheredContext.model_validate(visit.output)
    raise _fail(recording.failed, "context_gatherer", "nothing was gathered then")
