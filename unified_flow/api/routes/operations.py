"""For those who run the service or write a client of it: is it alive, can it answer, what has it
done, and what does each error ask of a client."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field

from unified_flow import __version__
from unified_flow.api import problems
from unified_flow.api.answer import DESCRIPTIONS
from unified_flow.api.dependencies import ExchangeDep, StateDep
from unified_flow.api.problems import CODES, Code, Kind
from unified_flow.api.readiness import Finding
from unified_flow.api.response_schemas import errors
from unified_flow.errors.safe_messages import MESSAGES, Language

router = APIRouter(tags=["operations"])


class Liveness(BaseModel):
    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.head("/health", include_in_schema=False)
@router.get("/health", responses=errors())
async def health() -> Liveness:
    """The process lives. Open to everybody."""
    return Liveness()


class Ready(BaseModel):
    ready: bool
    checks: dict[str, Finding]


@router.head("/ready", include_in_schema=False)
@router.get("/ready", response_model=Ready, responses=errors(503))
async def ready(state: StateDep, exchange: ExchangeDep) -> Any:
    """It could answer a question: index, model and queue work. Open to everybody."""
    checks = await state.readiness.checks(state.services)
    body = {"ready": "failed" not in checks.values(), "checks": checks}
    if body["ready"] and not state.running.stopping:
        return JSONResponse(body)
    problem = problems.unavailable("not_ready")
    exchange.record(problem)
    envelope = problem.envelope(exchange.request_id, exchange.language)
    return JSONResponse(envelope | body | {"ready": False}, problem.status, problem.headers)


@router.get(
    "/metrics",
    response_class=Response,
    responses=errors() | {200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}}},
)
async def metrics(state: StateDep) -> Response:
    """Prometheus's text format."""
    text = await asyncio.to_thread(state.metrics.render)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


class Advice(BaseModel):
    """What a client does about a code (rag-error-model.md, "Rekommenderat UI-beteende")."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)

    code: Code
    types: list[Kind]
    show_to_user: bool = True
    show: Literal["near_field", "neutral", "wait", "general"] = Field(
        description="near the field, as a neutral text, as a wish to wait, general"
    )
    highlight_field: bool = Field(
        default=False, description="mark the input that details.field names"
    )
    retry: bool = Field(default=False, description="whether the same request may succeed later")
    retry_button: bool = False
    wait: bool = Field(default=False, description="wait first: Retry-After, else a moment")
    disable_send: bool = Field(
        default=False, description="let nobody send until then; show a countdown"
    )
    hint_when_frequent: bool = Field(
        default=False, description="mention high load when it happens often"
    )
    admin: list[str] = Field(description="what to look at in the logs")
    message: dict[Language, str] = Field(description="what to show")


class Advices(BaseModel):
    errors: list[Advice]


ADVICE = Advices(
    errors=[
        Advice(
            code=code,
            types=[kind for kind, (of_kind, _) in CODES.items() if of_kind == code],
            message={language: texts[f"ui_{code}"] for language, texts in MESSAGES.items()},
            **behaviour,
        )
        for code, behaviour in DESCRIPTIONS["advice"].items()
    ]
)


@router.get("/errors", responses=errors())
async def error_advice() -> Advices:
    """For each code: retry or not, wait, show near the field, and the text to show."""
    return ADVICE
