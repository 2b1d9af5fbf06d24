"""The search for the question beside the first phase, under a policy that wants one.

Eight phases call models before anything is retrieved. So that there are passages to show should a
model fail, and so that no model is asked in vain while the index is down, the question is searched
for at once (system.md, "Policies"). The first phase ends when both have; the earlier failure wins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any, TypeVar

from pydantic import BaseModel

from interventions.secrets.redaction import redact_text
from unified_flow.engine.call_site import CallSite
from unified_flow.engine.services import Services
from unified_flow.errors import ToolNotFoundError
from unified_flow.lib.clock import elapsed_ms
from unified_flow.tools import Tool, ToolOutput
from unified_flow.tools.builtin.doc_search import NAME
from unified_flow.tools.caller import Caller
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.turn import Turn

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Prefetch:
    """One search, begun at once; `ends_at` (loop time) is when it must be back."""

    def __init__(
        self, services: Services, turn: Turn, tool: Tool, args: BaseModel, ends_at: float
    ) -> None:
        self._services = services
        self._caller = Caller(turn.user_id, turn.session_id, turn.turn_id)
        self._tool = tool
        self._args = args
        self._joined = False
        self._took_ms = 0.0
        left_s = ends_at - asyncio.get_running_loop().time()
        self._task = self._begin(max(0.0, round(left_s, 2)))

    @classmethod
    def of(cls, services: Services, turn: Turn, ends_at: float) -> Prefetch | None:
        """None where nothing can be searched, or may be."""
        request = ToolRequest(tool=NAME, args={"query": turn.question})
        try:
            tool, args = services.toolbox.check(request)
        except ToolNotFoundError:
            return None
        allowed = services.gate.decide(tool, turn.session_id).verdict == "allowed"
        return cls(services, turn, tool, args, ends_at) if allowed else None

    async def beside(self, phase: Coroutine[Any, Any, T], at: Callable[[CallSite], None]) -> T:
        """What the phase returns, once the search is back too. The first of the two that fails
        ends the other, and is raised; of two at once the search counts as the earlier. `at` is told
        if it was the search."""
        if self._joined:
            return await phase
        if self._failed:
            self._task = self._begin(self._services.policy.bounds.search_s)
        running = asyncio.ensure_future(phase)
        try:
            await asyncio.wait({running, self._task}, return_when=asyncio.FIRST_EXCEPTION)
            if self._failed:
                at(CallSite("retriever", tool=NAME, tool_args=self._args.model_dump()))
                self._task.result()
            result = await running
            self._joined = True
            return result
        finally:
            await _ended(running)

    async def passages(self) -> list[Passage]:
        """What it has found, or finds in the time that it has left; [] if it fails."""
        await asyncio.wait({self._task})
        if self._failed:
            logger.error("the search beside a phase that failed has failed too: %s", self._why)
            return []
        return passages_of(self._task.result().result)

    def answers(self, tool: Tool, args: BaseModel) -> tuple[ToolOutput, float] | None:
        """What the same call has brought, and how long it took (ms); None for any other call."""
        same = self._joined and (tool.name, args) == (self._tool.name, self._args)
        return (self._task.result(), self._took_ms) if same else None

    def end(self) -> None:
        self._task.cancel()
        self._task.add_done_callback(_seen)

    @property
    def _failed(self) -> bool:
        done = self._task.done() and not self._task.cancelled()
        return done and self._task.exception() is not None

    @property
    def _why(self) -> str:
        error = self._task.exception()
        return f"{type(error).__name__}: {redact_text(str(error))}"

    def _begin(self, within_s: float | None) -> asyncio.Task[ToolOutput]:
        call = self._services.toolbox.call(self._tool, self._args, self._caller, within_s=within_s)
        return asyncio.create_task(self._timed(call))

    async def _timed(self, call: Coroutine[Any, Any, ToolOutput]) -> ToolOutput:
        started = perf_counter()
        output = await call
        self._took_ms = elapsed_ms(started)
        return output


def passages_of(result: Any) -> list[Passage]:
    """The passages in what a search has found; [] for another tool's result."""
    found = result.get("passages", []) if isinstance(result, dict) else []
    return [Passage.model_validate(passage) for passage in found]


async def _ended(task: asyncio.Future[Any]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    _seen(task)


def _seen(task: asyncio.Future[Any]) -> None:
    """An error that nobody asks for is one that asyncio complains of."""
    if not task.cancelled():
        task.exception()
