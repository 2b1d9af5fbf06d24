"""What those who run the service ask: is it alive, can it answer, what has it done."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict

from unified_flow import __version__
from unified_flow.api.context import OfRequest, Served
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.advice import ADVICE, Advices
from unified_flow.api.problems.rendering import headers_of, note
from unified_flow.api.problems.schemas import errors

router = APIRouter(tags=["upkeep"])


class Alive(BaseModel):
    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"
    version: str = __version__


class Ready(BaseModel):
    model_config = ConfigDict(frozen=True)

    ready: bool
    checks: dict[str, Literal["ok", "failed"]]


@router.head("/health", include_in_schema=False)
@router.get("/health", responses=errors())
async def health() -> Alive:
    """The process lives. Open to everybody."""
    return Alive()


@router.head("/ready", include_in_schema=False)
@router.get("/ready", responses=errors(503))
async def ready(serving: Served, facts: OfRequest) -> Any:
    """It could answer a question: index, model and queue are well. Open to everybody."""
    found = await serving.readiness.checks(serving.flow.services)
    body = Ready(ready="failed" not in found.values(), checks=found).model_dump()
    if body["ready"] and not serving.running.stopping:
        return JSONResponse(body)
    problem = problems.unavailable()
    note(problem, facts)
    envelope = problem.body(facts.request_id, facts.language) | body | {"ready": False}
    return JSONResponse(envelope, problem.status, headers_of(problem))


@router.get("/errors", responses=errors())
async def error_advice() -> Advices:
    """For each code: retry or not, wait, show near the field, and what to say."""
    return ADVICE


@router.get(
    "/metrics",
    response_class=Response,
    responses=errors() | {200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}}},
)
async def metrics(serving: Served) -> Response:
    """Prometheus's text format."""
    text = await asyncio.to_thread(serving.metrics.render)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
