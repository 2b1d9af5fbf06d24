"""POST /v1/chat/completions and GET /v1/models: the flow as a model, for any OpenAI client.

The question is the last message of the user. The history is what the client sends, as every chat
front end does, or the session that it names (`metadata.session_id`). A stream begins when the turn
has ended, so that an error has its own status.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from pydantic.json_schema import SkipJsonSchema

from unified_flow.api import problems
from unified_flow.api.answer import Answer, pieces
from unified_flow.api.dependencies import ExchangeDep, StateDep
from unified_flow.api.problems import ProblemError
from unified_flow.api.response_schemas import STREAM, EventStream, openai_errors
from unified_flow.api.turns import Question, ask
from unified_flow.phases.query_analyzer import HISTORY_TURNS
from unified_flow.turns.events import ModelCalled, Observed
from unified_flow.turns.input_checks import MAX_ID_CHARS
from unified_flow.turns.results import PriorTurn

router = APIRouter(prefix="/v1", tags=["openai"])
MODEL = "unified-flow"

# pydantic ignores the fields of the protocol that mean nothing to the flow.


class ContentPart(BaseModel):
    type: str
    text: str = ""


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def is_text(self) -> bool:
        parts = self.content if isinstance(self.content, list) else []
        return all(part.type == "text" for part in parts)

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    include_usage: StrictBool = False


class TextFormat(BaseModel):
    type: Literal["text"]


class ChatMetadata(BaseModel):
    session_id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARS)


class ChatRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "model": MODEL,
                "messages": [{"role": "user", "content": "What is a topic?"}],
            }
        }
    )

    model: str = Field(default=MODEL, max_length=200)
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
    user: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARS)
    metadata: ChatMetadata | None = None
    n: Literal[1] | None = None
    # The flow itself decides about tools and form: what asks for another is refused, not ignored.
    tools: SkipJsonSchema[list[Any] | None] = None
    functions: SkipJsonSchema[list[Any] | None] = None
    tool_choice: Literal["none", "auto"] | None = None
    response_format: TextFormat | None = None

    @property
    def question(self) -> str:
        """Raises ProblemError for one that is more than text."""
        asked = next((m for m in reversed(self.messages) if m.role == "user"), None)
        if asked is not None and not asked.is_text:
            raise ProblemError(problems.invalid("text_alone", field_name="messages"))
        return asked.text if asked is not None else ""

    @property
    def history(self) -> tuple[PriorTurn, ...]:
        """The exchanges before the question, oldest first: a question with the answer after it."""
        turns: list[PriorTurn] = []
        question: str | None = None
        for message in self.messages:
            if message.role == "user":
                question = message.text
            elif message.role == "assistant" and question is not None:
                number = len(turns) + 1
                turns.append(PriorTurn(turn_id=number, question=question, answer=message.text))
                question = None
        return tuple(turns[-HISTORY_TURNS:])


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "unified-flow"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


class ChatReply(BaseModel):
    role: Literal["assistant"]
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    index: int
    message: ChatReply
    finish_reason: Literal["stop"]
    logprobs: None = None


class ChatUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    unified_flow: dict[str, Any] = Field(description="an Answer, without its text and trace")


@router.get("/models", responses=openai_errors())
async def models() -> ModelList:
    return ModelList(data=[ModelCard(id=MODEL)])


@router.get("/models/{model}", responses=openai_errors(404, 422))
async def model(model: str) -> ModelCard:
    if model != MODEL:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return ModelCard(id=MODEL)


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: {"content": STREAM}, **openai_errors(404, 408, 409, 413, 415, 422, 502)},
)
async def complete(
    request: Request, state: StateDep, exchange: ExchangeDep, body: ChatRequest
) -> Any:
    if body.model != MODEL:
        raise ProblemError(problems.invalid("model_unknown", 404, "model"))
    if body.tools or body.functions:
        raise ProblemError(problems.invalid("own_tools", field_name="tools"))
    session_id = body.metadata.session_id if body.metadata else None
    user = body.user or "default"
    question = Question(body.question, session_id, user, "chat", history=body.history)
    tokens = Counter[str]()

    def count(event: Observed) -> None:
        if isinstance(event, ModelCalled):
            tokens["prompt"] += event.prompt_tokens or 0
            tokens["completion"] += event.completion_tokens or 0

    turn = ask(state, question, exchange, count)
    answer = await state.running.while_connected(turn, request.receive)
    if not answer.should_respond:
        tokens.clear()  # its tokens would show whether a model was called
    usage = ChatUsage(
        prompt_tokens=tokens["prompt"],
        completion_tokens=tokens["completion"],
        total_tokens=tokens.total(),
    )
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return EventStream(_chunks(answer, usage if with_usage else None))
    return JSONResponse(_completion(answer, usage))


def _head(kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
    }


def _extension(answer: Answer) -> dict[str, Any]:
    """What the protocol has no field for, under one name of our own."""
    return {"unified_flow": answer.model_dump(mode="json", exclude={"answer", "trace"})}


def _choice(**content: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, **content, "logprobs": None}]}


def _completion(answer: Answer, usage: ChatUsage) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.answer, "refusal": None}
    choice = _choice(message=message, finish_reason="stop")
    return _head("chat.completion") | choice | {"usage": usage.model_dump()} | _extension(answer)


def _chunks(answer: Answer, usage: ChatUsage | None) -> Iterator[str]:
    head = _head("chat.completion.chunk")

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return head | _choice(delta=delta, finish_reason=reason)

    yield _data(chunk({"role": "assistant", "content": ""}))
    for piece in pieces(answer.answer):
        yield _data(chunk({"content": piece}))
    yield _data(chunk({}, "stop") | _extension(answer))
    if usage is not None:
        yield _data(head | {"choices": [], "usage": usage.model_dump()})
    yield "data: [DONE]\n\n"


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"
