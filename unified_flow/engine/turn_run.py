"""One run of a turn: its deadlines and its recipes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, NamedTuple, TypeVar

from unified_flow.engine.services import Services
from unified_flow.errors import PipelineTimeoutError
from unified_flow.errors.classification import Stage

T = TypeVar("T")


class CallSite(NamedTuple):
    """What a phase is doing: which model or tool it has called, if any. One is made for each call:
    a tuple is made in a third of the time."""

    stage: Stage = "answer_pipeline"
    model: str | None = None
    tool: str | None = None
    tool_args: dict[str, Any] | None = None


class TurnRun:
    """Begins now. Times are seconds of the event loop's clock; None: no bound."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.bounds = services.policy.bounds
        now = asyncio.get_running_loop().time()
        self.ends_at = None if self.bounds.pipeline_s is None else now + self.bounds.pipeline_s
        # When the first search must be back, the refresh of the index included.
        self.search_ends_at = None if self.bounds.search_s is None else now + self.bounds.search_s
        self.recipe = services.recipe_reader()

    @property
    def left_s(self) -> float | None:
        if self.ends_at is None:
            return None
        return max(0.0, self.ends_at - asyncio.get_running_loop().time())

    async def within_time(self, phase: Awaitable[T]) -> T:
        """The phase's result. Raises what it raises, and PipelineTimeoutError once the turn's time
        is up, which cancels the phase."""
        if self.ends_at is None:
            return await phase
        deadline = asyncio.timeout_at(self.ends_at)
        try:
            async with deadline:
                return await phase
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise PipelineTimeoutError(
                f"the turn did not come to its end in {self.bounds.pipeline_s:g} s",
                hint="The phases' times say what took long: graceful.pipeline_timeout_s.",
            ) from exc
