"""POST /query: a question, answered at once or as a stream of server-sent events."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api import streaming
from unified_flow.api.answers import Answer
from unified_flow.api.asking import Question, ask
from unified_flow.api.context import OfRequest, Served
from unified_flow.api.problems.schemas import STREAM, errors
from unified_flow.turns.input_checks import MAX_ID_CHARS

router = APIRouter(tags=["questions"])
EVENT_STREAM = "text/event-stream"


class Query(BaseModel):
    """What may be asked: 1 to 2,000 characters, which the flow itself checks."""

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
        description="go on with this conversation; without one nothing is kept",
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
    request: Request, serving: Served, facts: OfRequest, asked: Annotated[Query, Body()]
) -> Any:
    """Ask a question. Events of a stream: `phase`, `text`, then `answer` or `error`."""
    question = Question(asked.question, asked.session_id, asked.user_id, asked.channel)
    if asked.stream or EVENT_STREAM in request.headers.get("accept", "").lower():
        events = streaming.begin(serving, question, facts, traced=asked.trace)
        return StreamingResponse(events, media_type=EVENT_STREAM)
    work = ask(serving.flow, question, facts, serving.metrics, traced=asked.trace)
    answer = await serving.running.while_connected(work, request.receive)
    return JSONResponse(answer.model_dump(mode="json"))
