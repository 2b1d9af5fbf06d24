"""The application: the flow, its routes, the gate before them, and errors as responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from interventions.plaintext import one_line
from interventions.secrets.redaction import redact_text
from unified_flow import __version__
from unified_flow.api import problems
from unified_flow.api.access import Tokens, needs_triage
from unified_flow.api.dependencies import AppState
from unified_flow.api.gate import OPEN_PATHS, Gate
from unified_flow.api.http_exchange import response_of
from unified_flow.api.metrics import Metrics
from unified_flow.api.problems import PROBLEM_OF, Problem, ProblemError
from unified_flow.api.readiness import Readiness
from unified_flow.api.routes import completions, guardrails, operations, query, triage
from unified_flow.api.running_turns import Progress, RunningTurns, cancel_and_wait
from unified_flow.api.upkeep import Alarms, Upkeep
from unified_flow.engine.services import Services
from unified_flow.flow import UnifiedFlow

logger = logging.getLogger(__name__)

_WRONG_SHAPE = ("missing", "extra_forbidden", "model_attributes_type")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
BEARER = {"type": "http", "scheme": "bearer"}
SCHEMES = {
    "client": BEARER | {"description": "needed where the service has such a token"},
    "triage": BEARER | {"description": "opens what a client's token does, and triage"},
}


def make_app(services: Services, alarms: Alarms | None = None) -> FastAPI:
    """The service over a flow's services, which it closes when it ends.

    Raises ConfigError for an address that is not loopback and has no token, and for a key of
    sessions that cannot be used.
    """
    settings = services.settings.serve
    tokens = Tokens.read(settings)
    flow = UnifiedFlow(services)
    services.gate.attended = False
    running = RunningTurns(settings.max_turns)
    metrics = Metrics(services, running, alarms or Alarms())
    upkeep = Upkeep(services)
    progress = Progress(services.settings.timeout_s / 2)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        keeping_up = asyncio.create_task(upkeep.run())
        yield
        await cancel_and_wait(keeping_up)
        await running.aclose()
        await flow.aclose()

    app = routes(lifespan=lifespan)
    readiness = Readiness(upkeep, progress)
    state = AppState(flow, running, metrics, readiness, progress)
    if settings.own_session_ids:
        state.session_ids.make()  # a key that cannot be used is said now, and not to a client
    app.state.shared = state
    for error in (HTTPException, RequestValidationError, *PROBLEM_OF):
        app.add_exception_handler(error, _respond)
    # The last one added is the outermost.
    app.add_middleware(Gate, services=services, tokens=tokens, metrics=metrics)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.trusted_proxies)
    return app


def routes(**options: Any) -> FastAPI:
    """All routes, without the state that answers them: enough to describe them."""
    app = FastAPI(
        title="unified-flow",
        version=__version__,
        description="Answers from documents, in eight phases; every failure waits for a person.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would name the Host that the request claims
        # Turns have spans of their own. FastAPI's hold the URL's query, which may be a question.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        **options,
    )
    for module in (query, completions, triage, guardrails, operations):
        # Not by include_router, which has each request matched twice. Ours are only routes.
        app.router.routes += module.router.routes
    plain = app.openapi
    app.openapi = lambda: _with_security(plain())  # type: ignore[method-assign]
    return app


def _with_security(description: dict[str, Any]) -> dict[str, Any]:
    """The tokens that each route wants; the gate checks them before routing."""
    description["components"]["securitySchemes"] = SCHEMES
    for path, methods in description["paths"].items():
        for route in methods.values():
            if needs_triage(path):
                route["security"] = [{"triage": []}]
            elif path not in OPEN_PATHS:
                route["security"] = [{}, {"client": []}, {"triage": []}]
    return description


async def _respond(request: Request, exc: Exception) -> Response:
    exchange = request.state.exchange
    problem = _problem_of(exc)
    response = response_of(problem, exchange)
    if isinstance(exc, HTTPException):
        if exc.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response.headers["Allow"] = ", ".join(_methods(request))
    elif problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        text = one_line(redact_text(f"{type(exc).__name__}: {exc}"))
        logger.warning("request %s: %s", exchange.request_id, text)
    return response


def _methods(request: Request) -> list[str]:
    """What the path allows. Starlette's own header names the methods of one route alone."""

    def allows(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    return [method for method in METHODS if allows(method)]


def _problem_of(exc: Exception) -> Problem:
    if isinstance(exc, ProblemError):
        return exc.problem
    if isinstance(exc, RequestValidationError):
        return _of_validation(exc)
    if isinstance(exc, HTTPException):
        if exc.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's own, for an unreadable body
            return problems.invalid("body_no_json")
        return problems.of_status(exc.status_code)
    return problems.of_exception(exc)


def _of_validation(exc: RequestValidationError) -> Problem:
    """The first mistake: 422 for another shape of the body, 400 for a value out of bounds."""
    first = exc.errors()[0]
    kind = str(first["type"])
    if kind == "json_invalid":
        return problems.invalid("body_no_json")
    names = [part for part in first["loc"][1:] if isinstance(part, str)]
    if not names:
        return problems.of_status(422)
    name = {"question": "query"}.get(names[-1], names[-1])
    # The client chose an unknown name: it may hold a secret, or characters that no reply can.
    field = one_line(redact_text(name, 100))
    wrong_shape = kind in _WRONG_SHAPE or kind.endswith("_type")
    return problems.invalid("field_wrong", 422 if wrong_shape else 400, field)
