"""POST /query: a question, answered at once or as a stream of server-sent events.

A stream shows the phases as they come, then the answer's text in pieces, then all of it. The text
comes when the turn has ended: before that validation may take it back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api import problems
from unified_flow.api.answer import Answer, pieces
from unified_flow.api.dependencies import AppState, ExchangeDep, StateDep
from unified_flow.api.http_exchange import HttpExchange, body_of
from unified_flow.api.problems import CLIENT_CLOSED, Problem, ProblemError
from unified_flow.api.response_schemas import STREAM, errors
from unified_flow.api.running_turns import cancel_and_wait
from unified_flow.api.trace import with_trace
from unified_flow.api.turns import Question, ask
from unified_flow.errors import InputError
from unified_flow.turns.events import Observed, PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.turns.input_checks import MAX_ID_CHARS, checked_question
from unified_flow.turns.turn import Turn

router = APIRouter(tags=["questions"])
EVENT_STREAM = "text/event-stream"
KEEP_ALIVE_S = 15.0


class QueryRequest(BaseModel):
    """A question of 1 to 2,000 characters, which the flow itself checks."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,  # "yes" is no true
        json_schema_extra={"example": {"question": "What is a topic?", "session_id": "s1"}},
    )

    question: str = Field(description="1 to 2,000 characters")
    session_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_ID_CHARS,
        description="go on with this conversation; without one nothing is stored",
    )
    user_id: str = Field(default="default", min_length=1, max_length=MAX_ID_CHARS)
    channel: Literal["chat", "comment"] | None = None
    stream: bool = Field(default=False, description="answer with server-sent events")
    trace: bool = Field(
        default=False, description="add how the answer came about, or the error (in its `details`)"
    )


RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Answer,
        "description": "The answer; a question back (`metadata.status`); or that nothing was found",
        "content": STREAM,
    },
    **errors(408, 413, 415, 422, 429, 502),
}


@router.post("/query", responses=RESPONSES)
async def query(
    request: Request, state: StateDep, exchange: ExchangeDep, body: QueryRequest
) -> Any:
    """Ask a question. Events of a stream: `phase`, `text`, then `answer` or `error`."""
    question = Question(body.question, body.session_id, body.user_id, body.channel)
    if body.stream or EVENT_STREAM in request.headers.get("accept", "").lower():
        events = _begin_stream(state, question, exchange, traced=body.trace)
        return StreamingResponse(events, media_type=EVENT_STREAM)
    turn = ask(state, question, exchange, traced=body.trace)
    answer = await state.running.while_connected(turn, request.receive)
    return JSONResponse(answer.model_dump(mode="json"))


def _begin_stream(
    state: AppState, question: Question, exchange: HttpExchange, *, traced: bool
) -> AsyncIterator[str]:
    """The events of a turn that has begun. Raises ProblemError where none can begin: only a failure
    before the first event has a status of its own."""
    try:
        checked_question(question.text)
    except InputError as exc:
        problem = problems.of_exception(exc)
        if traced:
            problem = with_trace(problem, Turn(), exc, exchange.language)
        raise ProblemError(problem) from exc
    phases: asyncio.Queue[Observed | None] = asyncio.Queue()
    # Where a turn may end in silence its phases stay hidden: the last one would show why.
    may_silence = state.services.guardrails.may_silence
    observer = None if may_silence else phases.put_nowait
    task = state.running.start(ask(state, question, exchange, observer, traced=traced))
    task.add_done_callback(lambda _: phases.put_nowait(None))
    return _events(state, task, phases, exchange)


async def _events(
    state: AppState,
    task: asyncio.Task[Answer],
    phases: asyncio.Queue[Observed | None],
    exchange: HttpExchange,
) -> AsyncIterator[str]:
    """A client that stops reading cancels the turn."""
    try:
        async for event in _progress(phases):
            yield event
        try:
            answer = state.running.result(task)
        except ProblemError as exc:
            yield _error(exc.problem, exchange)
            return
        for piece in pieces(answer.answer):
            yield _event("text", {"text": piece})
        yield _event("answer", answer.model_dump(mode="json"))
    finally:
        if not task.done():
            exchange.status = CLIENT_CLOSED
            await cancel_and_wait(task)


async def _progress(phases: asyncio.Queue[Observed | None]) -> AsyncIterator[str]:
    """The phases' events until the turn ends (None), and a comment now and then."""
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                observed = await phases.get()
        except TimeoutError:
            yield ": still working\n\n"
            continue
        if observed is None:
            return
        if (event := _phase(observed)) is not None:
            yield event


def _phase(event: Observed) -> str | None:
    if not isinstance(event, PhaseStarted | PhaseCompleted | PhaseFailed):
        return None
    data: dict[str, Any] = {"name": event.phase, "visit": event.visit}
    if isinstance(event, PhaseStarted):
        return _event("phase", data | {"status": "started"})
    status = "completed" if isinstance(event, PhaseCompleted) else "failed"
    return _event("phase", data | {"status": status, "duration_ms": event.duration_ms})


def _error(problem: Problem, exchange: HttpExchange) -> str:
    exchange.record(problem)
    data = body_of(problem, exchange) | {"status": problem.status}
    if wait_s := problem.headers.get("Retry-After"):
        data["retry_after"] = int(wait_s)
    return _event("error", data)


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
