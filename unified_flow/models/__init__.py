"""The one interface of every model: embedded rules, a server over HTTP, a script for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from unified_flow.turns.sections import Sections

BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class ModelCall:
    """One question to a model.

    `output` is the pydantic model that the reply, a JSON object, must fit. `prompt` is the
    recipe's instruction; `query` the user's question as it was typed;
    `sections` what the recipe lets the phase read, `budgets` how many tokens of a section.
    """

    phase: str
    output: type[BaseModel]
    prompt: str
    query: str
    sections: Sections
    temperature: float
    max_tokens: int
    budgets: Mapping[str, int] = field(default_factory=dict)
    top_p: float | None = None
    stream: Stream | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Stream:
    """Who wants to see the text of `field` of the answer while it is written.

    `show` gets all of it so far, again and again. A model that answers at once need not call it.
    """

    field: str
    show: Callable[[str], None]


@dataclass(frozen=True)
class ModelReply:
    """The reply's text as it came; token counts where the server gives them. `left_out` counts
    what the prompt had no room for, by the name of its budget. `answer` is what the text says,
    where the model itself has made it of that."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    answer: BaseModel | None = None


@runtime_checkable
class Model(Protocol):
    """`complete` returns a JSON object that fits `call.output`; `prompt(call)` makes chat messages
    of the call. What it raises is the failure of the phase that asked."""

    @property
    def name(self) -> str: ...

    async def complete(self, call: ModelCall) -> ModelReply: ...

    async def aclose(self) -> None: ...


def estimate_tokens(text: str) -> int:
    """UTF-8 bytes by four, since no tokenizer is known: about right for English, and
    never far too low for other scripts."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
