"""A model that answers from a script: for this package's tests and for its users'."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from pydantic import BaseModel

from unified_flow.errors import UnifiedFlowError
from unified_flow.models import ModelCall, ModelReply

Answer = (
    BaseModel
    | Mapping[str, Any]
    | str
    | ModelReply
    | BaseException
    | Callable[[ModelCall], BaseModel | Mapping[str, Any] | str]
)
"""A phase result or its fields, the reply's text as it came, an exception to raise, or a
function of the call that gives one of the first three."""


class ScriptExhaustedError(UnifiedFlowError):
    """The flow asked more often than the script answers."""


class ScriptedModel:
    """`script` is a list, answered in the order of the calls whatever their phase, or a dict
    by phase whose values are a list (in order, once each) or one answer (every time).

    `calls` holds what was asked. A question beyond the script raises ScriptExhaustedError.
    """

    def __init__(
        self,
        script: Sequence[Answer] | Mapping[str, Answer | Sequence[Answer]],
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.calls: list[ModelCall] = []
        self.closed = False
        self._by_phase: dict[str, Iterator[Answer]] | None = None
        self._in_order: Iterator[Answer] = iter(())
        if isinstance(script, Mapping):
            self._by_phase = {phase: _answers(value) for phase, value in script.items()}
        else:
            self._in_order = iter(script)

    async def complete(self, call: ModelCall) -> ModelReply:
        self.calls.append(call)
        answers = self._in_order if self._by_phase is None else self._by_phase.get(call.phase)
        answer = next(answers, None) if answers is not None else None
        if answer is None:
            count = len([c for c in self.calls if c.phase == call.phase])
            raise ScriptExhaustedError(
                f"the script of model {self.name!r} has no answer for call {len(self.calls)}"
                f" (number {count} of phase {call.phase})",
                hint=f"Add an answer for {call.phase}, or see why it is asked so often.",
            )
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, ModelReply):
            return answer
        if isinstance(answer, BaseModel | Mapping | str):
            return ModelReply(_text(answer))
        return ModelReply(_text(answer(call)))

    async def aclose(self) -> None:
        self.closed = True

    @property
    def phases(self) -> list[str]:
        """The phases that asked, in order."""
        return [call.phase for call in self.calls]


def _answers(value: Answer | Sequence[Answer]) -> Iterator[Answer]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return iter(value)
    return repeat(value)


def _text(answer: BaseModel | Mapping[str, Any] | str) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, BaseModel):
        return answer.model_dump_json()
    return json.dumps(answer)
