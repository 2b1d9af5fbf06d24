"""What a phase may ask for while it runs; the engine implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from unified_flow.phases.errors import PhaseError
from unified_flow.phases.recipe import Recipe
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


class ModelInputs(TypedDict, total=False):
    """What a model is shown beside or in place of the sections, by the names in `Sections`."""

    history: tuple[PriorTurn, ...]
    tools: tuple[ToolDescription, ...]
    context_gatherer: GatheredContext
    evidence: tuple[str, ...]


class PhaseContext(Protocol):
    @property
    def recipe(self) -> Recipe: ...

    @property
    def by_rules(self) -> bool:
        """Whether the embedded model does the phase."""
        ...

    @property
    def is_small(self) -> bool:
        """Whether a small language model does the phase, or leaves it to rules."""
        ...

    async def ask(
        self,
        output: type[T],
        *,
        by_rules: bool | None = None,
        stream: str | None = None,
        **inputs: Unpack[ModelInputs],
    ) -> T:
        """The model's answer as `output`.

        `by_rules` asks the embedded model, or the one that would leave the phase to it, whatever
        the recipe says. Observers see the answer's field `stream` while it is written.

        Raises what the model raises, NotJSONError or SchemaMismatchError for an answer that
        does not fit, LimitReachedError before one call too many.
        """
        ...

    async def tools(self) -> tuple[ToolDescription, ...]:
        """The tools that the planner may request. Raises ToolServerError."""
        ...

    @property
    def lacking(self) -> Mapping[str, str]:
        """Optional servers that did not answer `tools`, and why."""
        ...

    async def call(self, place: int, request: ToolRequest) -> ToolResult:
        """The result of the plan's request number `place`; a completed one is not run again.

        Raises ToolNotFoundError, ToolArgumentError or ToolDeniedError before anything has run,
        else what the tool raises.
        """
        ...

    async def history(self, most: int) -> tuple[PriorTurn, ...]:
        """The session's last turns before this one, oldest first. A resumed turn sees the ones
        that it saw at first. Raises RetrievalError."""
        ...

    async def search_history(self, query: str, most: int) -> list[PriorTurn]:
        """The session's earlier turns that match `query`, best first. Raises RetrievalError."""
        ...

    async def memories(self, query: str, most: int) -> list[Memory]:
        """The user's memories that match `query`, best first; none for a turn that is not kept,
        whose caller may name any user. Raises RetrievalError."""
        ...

    async def save(self, turn: Turn) -> Saved:
        """Write the turn into its session. Raises RetrievalError."""
        ...


class Phase(Protocol):
    """A phase is a module with these four names. `ERROR` is raised when it fails, `SEVERITY` is
    that of its intervention."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    @property
    def ERROR(self) -> type[PhaseError]: ...  # noqa: N802
    @property
    def SEVERITY(self) -> str: ...  # noqa: N802

    async def run(self, turn: Turn, context: PhaseContext) -> Any: ...
