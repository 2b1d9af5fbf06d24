"""POST /query: a question, answered at once or as a stream of server-sent events.

A stream shows the phases as they come, then the answer's text in pieces, then all of it. The text
comes when the turn has ended: before that validation may take it back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive

from unified_flow.api.answer import Answer, pieces
from unified_flow.api.dependencies import AppState, ExchangeDep, StateDep
from unified_flow.api.http_exchange import HttpExchange, body_of
from unified_flow.api.problems import CLIENT_CLOSED, Problem, ProblemError
from unified_flow.api.response_schemas import STREAM, EventStream, errors
from unified_flow.api.running_turns import cancel_and_wait, connected_until
from unified_flow.api.turns import Question, ask
from unified_flow.turns.events import Observed, PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.turns.input_checks import MAX_ID_CHARS, MAX_QUESTION_CHARS

router = APIRouter(tags=["questions"])
KEEP_ALIVE_S = 15.0


class StreamedQuestion(BaseModel):
    """A question of 1 to 2,000 characters, which the flow itself checks."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(
        description="1 to 2,000 characters",
        json_schema_extra={"minLength": 1, "maxLength": MAX_QUESTION_CHARS},
    )
    session_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_ID_CHARS,
        description="go on with this conversation; without one nothing is stored",
    )
    user_id: str = Field(default="default", min_length=1, max_length=MAX_ID_CHARS)
    channel: Literal["chat", "comment"] | None = None
    trace: bool = Field(
        default=False, description="add how the answer came about, or the error (in its `details`)"
    )

    @property
    def to_ask(self) -> Question:
        return Question(self.question, self.session_id, self.user_id, self.channel)


class QueryRequest(StreamedQuestion):
    model_config = ConfigDict(
        strict=True,  # "yes" is no true
        json_schema_extra={"example": {"question": "What is a topic?", "session_id": "s1"}},
    )

    stream: bool = Field(default=False, description="answer with server-sent events")


RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Answer,
        "description": "The answer; a question back (`metadata.status`); or that nothing was found",
        "content": STREAM,
    },
    **errors(408, 409, 413, 415, 422, 502),
}


STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events", "content": STREAM},
    204: {"description": "The stream that this goes on from has ended"},
    **errors(409, 422, 502),
}


@router.post("/query", responses=RESPONSES)
async def query(
    request: Request, state: StateDep, exchange: ExchangeDep, body: QueryRequest
) -> Any:
    """Ask a question. Events of a stream: `phase`, `text`, then `answer` or `error`."""
    if body.stream or EventStream.media_type in request.headers.get("accept", "").lower():
        return await _stream(state, body, exchange, request.receive)
    turn = ask(state, body.to_ask, exchange, traced=body.trace)
    answer = await state.running.while_connected(turn, request.receive)
    return Response(answer.model_dump_json(), media_type="application/json")


@router.get("/query/stream", responses=STREAMED)
async def query_stream(
    request: Request,
    state: StateDep,
    exchange: ExchangeDep,
    asked: Annotated[StreamedQuestion, Query()],
) -> Response:
    """The same as a stream, for a browser's EventSource, which can only GET. After the end that
    connects again, with the id of the last event: 204 tells it to stop."""
    if "last-event-id" in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return await _stream(state, asked, exchange, request.receive, f"id: {exchange.request_id}\n\n")


class NewSession(BaseModel):
    session_id: str = Field(description="for `session_id` of questions; nothing is stored yet")


@router.post("/sessions", responses=errors())
async def new_session(state: StateDep) -> NewSession:
    """A name for a conversation that nobody can guess, and the only kind of name that is accepted
    where `own_session_ids` is set."""
    return NewSession(session_id=state.session_ids.make())


async def _stream(
    state: AppState,
    asked: StreamedQuestion,
    exchange: HttpExchange,
    receive: Receive,
    first: str = "",
) -> EventStream:
    """`first`, and the events of a turn that has begun. Raises ProblemError where none begins: only
    a failure before the first event has a status of its own."""
    seen: asyncio.Queue[Observed | None] = asyncio.Queue()
    turn = ask(state, asked.to_ask, exchange, seen.put_nowait, traced=asked.trace)
    task = state.running.start(turn)
    task.add_done_callback(lambda _: seen.put_nowait(None))
    begun = asyncio.ensure_future(seen.get())
    await connected_until(begun, task, receive)
    if begun.result() is None:
        state.running.result(task)
        seen.put_nowait(None)  # it was answered before
    return EventStream(_events(state, task, seen, exchange, first))


async def _events(
    state: AppState,
    task: asyncio.Task[Answer],
    seen: asyncio.Queue[Observed | None],
    exchange: HttpExchange,
    first: str,
) -> AsyncIterator[str]:
    """A client that stops reading cancels the turn."""
    try:
        if first:
            yield first
        # Where a turn may end in silence its phases stay hidden: the last one would show why.
        hidden = state.services.guardrails.may_silence
        async for event in _progress(seen, hidden=hidden):
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


async def _progress(seen: asyncio.Queue[Observed | None], *, hidden: bool) -> AsyncIterator[str]:
    """The phases' events until the turn ends (None), and a comment now and then."""
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                observed = await seen.get()
        except TimeoutError:
            yield ": still working\n\n"
            continue
        if observed is None:
            return
        if not hidden and (event := _phase(observed)) is not None:
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
