"""What one run of a turn keeps to besides its journal: its recipes, its end, and the search beside
its start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from interventions.secrets.redaction import redact_text
from unified_flow.engine.call_site import CallSite
from unified_flow.engine.prefetch import Prefetch, passages_of
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.querylog import LogRequest
from unified_flow.errors import PipelineTimeoutError
from unified_flow.phases import NAMES
from unified_flow.phases.recipe import Recipe
from unified_flow.policies import UNBOUNDED, Bounds
from unified_flow.turns.passage import Passage
from unified_flow.turns.turn import Turn

T = TypeVar("T")
BEFORE_TOOLS = (None, *NAMES[: NAMES.index("coordinator") - 1])


@dataclass
class TurnRun:
    """Times are those of the loop's clock; None: no bound. `reporting` puts the turn's failure in
    the queue and may outlive the run; `log` takes the request's line instead of the query log."""

    began_at: float = 0.0
    bounds: Bounds = UNBOUNDED
    prefetch: Prefetch | None = None
    reporting: asyncio.Task[Any] | None = None
    log: LogRequest | None = None
    recipes: dict[str, Recipe] = field(default_factory=dict)

    @classmethod
    def begin(cls, bounds: Bounds, log: LogRequest | None = None) -> TurnRun:
        return cls(asyncio.get_running_loop().time(), bounds, log=log)

    def recipe(self, services: Services, phase: str) -> Recipe:
        """As the run has first seen it, however often it looks. Raises RecipeError."""
        found = self.recipes.get(phase)
        if found is None:
            found = self.recipes[phase] = services.recipe(phase)
        return found

    @property
    def ends_at(self) -> float | None:
        return self._at(self.bounds.pipeline_s)

    @property
    def searched_at(self) -> float | None:
        """When the first search must be back, the refreshing of the index included."""
        return self._at(self.bounds.search_s)

    @property
    def left_s(self) -> float | None:
        if self.ends_at is None:
            return None
        return max(0.0, self.ends_at - asyncio.get_running_loop().time())

    def search_first(self, services: Services, turn: Turn) -> None:
        """Unless the turn is resumed where it has searched already."""
        if not self.bounds.searches_first or turn.completed not in BEFORE_TOOLS:
            return
        assert self.searched_at is not None
        self.prefetch = Prefetch.of(services, turn, self.searched_at)

    async def run(self, phase: Coroutine[Any, Any, T], at: Callable[[CallSite], None]) -> T:
        """The phase's result. Raises what it raises, what the search beside it raises, and
        PipelineTimeoutError once the turn's time is up; both are then ended by cancellation."""
        if self.ends_at is None and self.prefetch is None:
            return await phase
        deadline = asyncio.timeout_at(self.ends_at)
        try:
            async with deadline:
                return await (self.prefetch.beside(phase, at) if self.prefetch else phase)
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise PipelineTimeoutError(
                f"the turn did not come to its end in {self.bounds.pipeline_s:g} s",
                hint="The phases' times say what took long: graceful.pipeline_timeout_s.",
            ) from exc

    async def retrieved(self, turn: Turn) -> list[Passage]:
        """The passages that the turn has found for its question, redacted, best first: by its own
        searches, else by the one beside its first phase."""
        results = [*turn.sections.coordinator, *turn.tools_done.values()]
        found = [passage for result in results for passage in passages_of(result.result)]
        if not found and self.prefetch is not None:
            found = await self.prefetch.passages()
        once = {passage.chunk_id: passage for passage in found}
        return [
            passage.model_copy(update={"text": redact_text(passage.text)})
            for passage in sorted(once.values(), key=lambda passage: -passage.score)
        ]

    def end(self) -> None:
        if self.prefetch is not None:
            self.prefetch.end()

    def _at(self, bound_s: float | None) -> float | None:
        return None if bound_s is None else self.began_at + bound_s
