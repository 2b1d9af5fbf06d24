"""The searches for the question beside the first phase, under a policy that wants them.

Eight phases call models before anything is retrieved. So that there are passages to show should a
model fail, and so that no model is asked in vain while the index is down, the question is searched
for at once (system.md, "Policies"), in the words in which rules would plan it, so that their plan
finds it done. The first phase ends when both have; the earlier failure wins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any, TypeVar

from pydantic import BaseModel

from interventions.secrets.redaction import redact_text
from unified_flow.config.tool_names import DOC_SEARCH
from unified_flow.engine.turn_run import CallSite, TurnRun
from unified_flow.errors import ToolNotFoundError
from unified_flow.lib.clock import elapsed_ms
from unified_flow.phases import NAMES
from unified_flow.tools import Caller, Tool, ToolOutput
from unified_flow.turns.passage import Passage, passages_in
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.turn import Turn

logger = logging.getLogger(__name__)
T = TypeVar("T")
BEFORE_TOOLS = (None, *NAMES[: NAMES.index("coordinator") - 1])


class Prefetch:
    """The searches that the turn will ask for most probably, begun before it does."""

    def __init__(self, run: TurnRun, turn: Turn, tool: Tool, searches: Sequence[BaseModel]) -> None:
        self._services = run.services
        self._caller = Caller(turn.user_id, turn.session_id, turn.turn_id)
        self._tool = tool
        self._searches = searches
        self._found: list[tuple[ToolOutput, float]] = []  # results with their durations in ms
        self._joined = False
        assert run.search_ends_at is not None
        left_s = run.search_ends_at - asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._search(max(0.0, round(left_s, 2))))

    @classmethod
    def begin(cls, turn: Turn, run: TurnRun) -> Prefetch | None:
        """None if the policy wants no search beside the first phase, the turn has already
        searched, or no search is allowed."""
        if not run.bounds.searches_first or turn.completed not in BEFORE_TOOLS:
            return None
        # The functions of the plan, so that its searches are the same; late, because they load the
        # word lists of all languages.
        from unified_flow.models.embedded.analysis import bare
        from unified_flow.models.embedded.planning import questions_in, search_query

        toolbox, gate = run.services.toolbox, run.services.gate
        queries = map(search_query, questions_in(bare(turn.question)))
        requests = (ToolRequest(tool=DOC_SEARCH, args={"query": query}) for query in queries)
        try:
            (tool, *_), searches = zip(*map(toolbox.check, requests), strict=True)
        except ToolNotFoundError:
            return None
        allowed = gate.decide(tool, turn.session_id).verdict == "allowed"
        return cls(run, turn, tool, searches) if allowed else None

    async def run_beside(
        self, phase: Coroutine[Any, Any, T], set_call_site: Callable[[CallSite], None]
    ) -> T:
        """The phase's result, once the search has completed too. The first failure of the two
        cancels the other and is raised; of two at once, the search's. `set_call_site` learns of
        a failed search."""
        if self._joined:
            return await phase
        if self._failed:
            self._task = asyncio.create_task(self._search(self._services.policy.bounds.search_s))
        running = asyncio.ensure_future(phase)
        try:
            await asyncio.wait({running, self._task}, return_when=asyncio.FIRST_EXCEPTION)
            if self._failed:
                failed = self._searches[len(self._found)].model_dump()
                set_call_site(CallSite("retriever", tool=DOC_SEARCH, tool_args=failed))
                self._task.result()
            result = await running
            self._joined = True
            return result
        finally:
            if running.cancel():
                await asyncio.wait({running})
            _retrieve_exception(running)

    async def passages(self) -> list[Passage]:
        """What the searches find in the time that they have left, until one fails."""
        await asyncio.wait({self._task})
        if self._failed:
            error = self._task.exception()
            why = f"{type(error).__name__}: {redact_text(str(error))}"
            logger.error("the search beside a phase that failed has failed too: %s", why)
        found = [each for output, _ in self._found for each in passages_in(output.result)]
        return list({each.chunk_id: each for each in found}.values())

    def answers(self, tool: Tool, args: BaseModel) -> tuple[ToolOutput, float] | None:
        """The result of the same call, and its duration in ms; None for any other call."""
        if not self._joined or tool.name != self._tool.name or args not in self._searches:
            return None
        return self._found[self._searches.index(args)]

    def end(self) -> None:
        self._task.cancel()
        self._task.add_done_callback(_retrieve_exception)

    @property
    def _failed(self) -> bool:
        done = self._task.done() and not self._task.cancelled()
        return done and self._task.exception() is not None

    async def _search(self, within_s: float | None) -> None:
        """One after the other, within this time together."""
        call, began = self._services.toolbox.call, perf_counter()
        self._found.clear()
        for args in self._searches:
            started = perf_counter()
            left_s = None if within_s is None else max(0.0, round(began + within_s - started, 2))
            output = await call(self._tool, args, self._caller, within_s=left_s)
            self._found.append((output, elapsed_ms(started)))


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """asyncio warns of an exception that nobody retrieves."""
    if not task.cancelled():
        task.exception()
