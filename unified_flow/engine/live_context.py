"""The context of a running phase: its way to models, tools and stores.

Each call sets the call site while it runs, so that the boundary knows at which stage an exception
came up, and writes its result to the journal.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel

from unified_flow.config.settings import EMBEDDED
from unified_flow.config.tool_names import INTERNET_RESEARCH
from unified_flow.engine.model_request import model_call, request_digest
from unified_flow.engine.prefetch import Prefetch
from unified_flow.engine.services import Services
from unified_flow.engine.turn_run import CallSite
from unified_flow.errors import ToolServerError
from unified_flow.lib.clock import elapsed_ms
from unified_flow.lib.text.urls import urls_in, without_fragment
from unified_flow.models import Stream
from unified_flow.models.reply import parse_reply
from unified_flow.phases.context import ModelInputs
from unified_flow.phases.recipe import Recipe
from unified_flow.tools import Caller, Tool, ToolOutput
from unified_flow.tools.permission_gate import NOT_ALLOWED
from unified_flow.turns import events
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.lines import digest
from unified_flow.turns.results import Memory, PriorTurn, Saved, ToolRequest, ToolResult
from unified_flow.turns.sections import Sections, ToolDescription
from unified_flow.turns.turn import Turn

T = TypeVar("T", bound=BaseModel)


@dataclass
class LivePhaseContext:
    """The context of one visit of one phase. `model` names the one to ask instead of the recipe's;
    `prefetch` may hold the answer of a search; `call_site` is for the boundary."""

    phase: str
    recipe: Recipe
    ledger: Ledger
    services: Services
    model: str | None = None
    prefetch: Prefetch | None = None
    call_site: CallSite = field(default_factory=CallSite)

    def set_call_site(self, call_site: CallSite) -> None:
        self.call_site = call_site

    async def tools(self) -> tuple[ToolDescription, ...]:
        toolbox, gate, turn = self.services.toolbox, self.services.gate, self.ledger.turn
        await toolbox.open()
        withheld = gate.withheld(toolbox, turn.session_id) | _refused_tools(turn)
        known = toolbox.describe(personal=turn.persist)
        return tuple(tool for tool in known if tool.name not in withheld)

    @property
    def lacking(self) -> Mapping[str, str]:
        return self.services.toolbox.lacking

    @property
    def by_rules(self) -> bool:
        return (self.model or self.services.models.name_of(self.recipe.head)) == EMBEDDED

    @property
    def is_small(self) -> bool:
        return self.services.models.is_small(self.recipe.head)

    @property
    def sections(self) -> Sections:
        """The sections that the recipe lets this phase read."""
        return self.ledger.turn.sections.only(self.recipe.head.reads)

    async def ask(
        self,
        output: type[T],
        *,
        by_rules: bool | None = None,
        stream: str | None = None,
        **inputs: Unpack[ModelInputs],
    ) -> T:
        models, head = self.services.models, self.recipe.head
        # A turn that may yet be silenced shows no text to its observers.
        shown = self.ledger.watched and not self.services.guardrails.may_silence
        call = model_call(
            self.ledger.turn,
            self.phase,
            self.recipe,
            output,
            inputs,
            limit=self.services.settings.limits.model_calls,
            stream=Stream(stream, self._show_text) if stream and shown else None,
        )
        name = EMBEDDED if by_rules else self.model
        model = models.named(name) if name else models.of_phase(head, by_rules=by_rules)
        self.call_site = CallSite(stage="llm", model=model.name)
        await self.ledger.checkpoint()
        asked: dict[str, Any] = {
            "phase": self.phase,
            "model": model.name,
            "request_digest": "" if model.name == EMBEDDED else request_digest(call),
        }
        started = perf_counter()
        try:
            reply = await model.complete(call)
        except Exception as exc:  # only to count the call; the boundary handles it
            took, name = elapsed_ms(started), type(exc).__name__
            await self.ledger.record(events.ModelFailed(**asked, error_type=name, duration_ms=took))
            raise
        await self.ledger.record(
            events.ModelCalled(
                **asked,
                reply=reply.text,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                left_out=dict(reply.left_out),
                duration_ms=elapsed_ms(started),
            )
        )
        own = reply.answer
        answer = own if isinstance(own, output) else parse_reply(reply.text, output)
        self.call_site = CallSite()
        return answer

    async def memories(self, query: str, most: int) -> list[Memory]:
        turn, memory = self.ledger.turn, self.services.memory
        if not turn.persist or not memory.knows(turn.user_id):
            return []
        return await to_thread(memory.search, turn.user_id, query, limit=most)

    async def history(self, most: int) -> tuple[PriorTurn, ...]:
        turn = self.ledger.turn
        if turn.history is None:
            found = await to_thread(
                self.services.sessions.recent,
                turn.session_id,
                before=turn.earlier_than or turn.turn_id,
                limit=most,
            )
            await self.ledger.record(events.HistoryRead(phase=self.phase, turns=found))
        return self.ledger.turn.history or ()

    async def search_history(self, query: str, most: int) -> list[PriorTurn]:
        turn = self.ledger.turn
        if turn.history == ():
            return []  # the session has no turn before this one
        search = self.services.sessions.search
        before = turn.earlier_than or turn.turn_id
        return await to_thread(search, turn.session_id, query, before=before, limit=most)

    async def save(self, turn: Turn) -> Saved:
        return await to_thread(self.services.sessions.save, turn) if turn.persist else Saved()

    def _show_text(self, text: str) -> None:
        self.ledger.show(events.TextArrived(phase=self.phase, text=text))

    async def call(self, place: int, request: ToolRequest) -> ToolResult:
        turn, toolbox = self.ledger.turn, self.services.toolbox
        if place in turn.tools_done:
            return turn.tools_done[place]
        self.call_site = CallSite(tool=request.tool, tool_args=request.args)
        await toolbox.open(request.tool)
        if why := self._missing(request.tool):
            return await self._refuse(place, request, why)
        tool, args = toolbox.check(request)
        self.call_site = CallSite(stage=tool.stage, tool=request.tool, tool_args=request.args)
        given = turn.given
        if given is not None and (given.tool, given.args) != (request.tool, request.args):
            given = None
        urls = _urls_named(turn)
        if tool.name in _refused_tools(turn):
            return await self._refuse(place, request)
        permission = await self.services.gate.admit(
            tool,
            request.args,
            session_id=turn.session_id,
            granted=given.grant if given is not None else None,
            question=turn.question,
            persist=turn.persist,
            urls=urls,
        )
        if permission.verdict == "denied":
            return await self._refuse(place, request)
        await self.ledger.record(
            events.ToolStarted(
                phase=self.phase,
                call=place,
                tool=request.tool,
                goal_id=request.goal_id,
                args=request.args,
                access=sorted(tool.access),
                allowed_by=permission.why,
            )
        )
        await self.ledger.checkpoint()
        analysis = turn.sections.query_analyzer
        caller = Caller(
            user_id=turn.user_id,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            answer=given.answer if given is not None else None,
            conversation=analysis.conversation if analysis is not None else {},
            urls=urls,
            files=self.services.turns.files(turn.turn_id) if turn.persist else None,
            call_id=_call_id(turn, place),
        )
        try:
            output, took = await self._output(tool, args, caller)
        except ToolServerError:
            if why := self._missing(request.tool):
                return await self._refuse(place, request, why)
            raise
        result = ToolResult(
            tool=request.tool,
            goal_id=request.goal_id,
            success=True,
            result=output.result,
            claims=output.claims,
            duration_ms=took,
        )
        return await self._done(place, result)

    async def _output(
        self, tool: Tool, args: BaseModel, caller: Caller
    ) -> tuple[ToolOutput, float]:
        """What the tool answers, and how long it took in ms."""
        # The search beside the first phase did not know the conversation yet.
        if self.prefetch is not None and not caller.conversation:
            found = self.prefetch.answers(tool, args)
            if found is not None:
                return found
        within_s = self.services.policy.bounds.search_s if tool.stage == "retriever" else None
        started = perf_counter()
        output = await self.services.toolbox.call(tool, args, caller, within_s=within_s)
        return output, elapsed_ms(started)

    def _missing(self, tool: str) -> str | None:
        """Why the tool's optional server is gone, if it is."""
        return self.services.toolbox.lacking.get(tool.partition(".")[0])

    async def _refuse(self, place: int, request: ToolRequest, why: str = NOT_ALLOWED) -> ToolResult:
        said = ToolResult(tool=request.tool, goal_id=request.goal_id, success=False, result=why)
        return await self._done(place, said)

    async def _done(self, place: int, result: ToolResult) -> ToolResult:
        took = result.duration_ms
        await self.ledger.record(
            events.ToolCompleted(phase=self.phase, call=place, output=result, duration_ms=took)
        )
        self.call_site = CallSite()
        return result


def _call_id(turn: Turn, place: int) -> str:
    """The id of the plan's request at `place`: by what it asks, as a person may edit the plan
    around it, and by the results before the plan, as a later one may ask for the same again."""
    plan = turn.sections.planner
    asked = [(each.tool, each.args) for each in plan.tool_requests] if plan is not None else []
    nth = asked[:place].count(asked[place])
    seen = [turn.request_id, len(turn.sections.coordinator), *asked[place], nth]
    return f"{turn.turn_id}-{digest(seen)[:32]}"


def _refused_tools(turn: Turn) -> set[str]:
    """The tools that a person has said no to in this turn: nobody is asked twice."""
    results = (*turn.sections.coordinator, *turn.tools_done.values())
    return {result.tool for result in results if result.result == NOT_ALLOWED}


def _urls_named(turn: Turn) -> frozenset[str]:
    """The addresses in the question, and those in the text of pages whose own addresses are among
    them: no model made them up. What else a result holds are the model's own words, which a page
    that it chose may repeat."""
    known = set(map(without_fragment, urls_in(turn.question)))
    for each in turn.sections.coordinator:
        if each.tool != INTERNET_RESEARCH or not each.success:
            continue
        if all(without_fragment(page["url"]) in known for page in each.result["pages"]):
            texts = [passage.text for passage in each.passages]
            known |= {without_fragment(url) for text in texts for url in urls_in(text)}
    return frozenset(known)
