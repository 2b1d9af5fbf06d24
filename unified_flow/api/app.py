"""The application: the flow, its routes, and the gate before them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from interventions.plaintext import one_line
from interventions.secrets.redaction import redact_text
from unified_flow import __version__
from unified_flow.api.context import Serving, one_too_many
from unified_flow.api.cors import Cors
from unified_flow.api.facts import Facts, facts_of
from unified_flow.api.gate import LOOPBACK_NAMES, OPEN_PATHS, Gate, facts_in, write_line
from unified_flow.api.metrics import Metrics
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.exceptions import PROBLEMS, of_exception
from unified_flow.api.problems.problem import Problem
from unified_flow.api.problems.rendering import ProblemError, response_of
from unified_flow.api.problems.schemas import secured
from unified_flow.api.ratelimit import Buckets, Rate
from unified_flow.api.readiness import Readiness
from unified_flow.api.routes import completions, guardrails, query, triage, turns, upkeep
from unified_flow.api.running import Running
from unified_flow.api.tokens import Tokens, read_token
from unified_flow.config.tables import ServeSettings
from unified_flow.engine.services import Services
from unified_flow.errors import ConfigError
from unified_flow.flow import UnifiedFlow

logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FORM = ("missing", "extra_forbidden", "model_attributes_type")


def make_app(services: Services) -> FastAPI:
    """The service over a flow's services, which it closes when it ends.

    Raises ConfigError for an address that is not loopback and has no token.
    """
    settings = services.settings.serve
    tokens = tokens_of(settings)
    flow = UnifiedFlow(services)
    running = Running(settings.max_turns)
    serving = Serving(
        flow=flow,
        tokens=tokens,
        running=running,
        buckets=Buckets(Rate.parse(settings.rate_limit)),
        metrics=Metrics(
            services.queue.health, lambda: len(running), services.guardrails.stats_of_today
        ),
        readiness=Readiness(),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await running.end()
        await flow.aclose()

    app = routes(lifespan=lifespan)
    app.state.serving = serving
    app.state.refused = partial(_no_http, services, serving.metrics)
    app.add_exception_handler(ProblemError, _refused)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _wrong)
    for known in PROBLEMS:
        app.add_exception_handler(known, _known)
    # The last one added stands outermost.
    app.add_middleware(
        Gate,
        services=services,
        tokens=tokens,
        hosts=_hosts(settings),
        done=serving.metrics.answered,
        limited=partial(one_too_many, serving.buckets),
    )
    if settings.cors_origins:
        app.add_middleware(
            Cors,
            origins=settings.cors_origins,
            answered=partial(_logged, services, serving.metrics),
            language=services.settings.language,
        )
    return app


def routes(**options: Any) -> FastAPI:
    """What can be asked, without anything that could answer: enough to describe it."""
    app = FastAPI(
        title="unified-flow",
        version=__version__,
        description="Answers from documents, in eight phases; every failure waits for a person.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would name whatever host the request did
        **options,
    )
    for part in (query, completions, turns, triage, guardrails, upkeep):
        app.include_router(part.router)
    plain = app.openapi
    app.openapi = lambda: secured(plain(), OPEN_PATHS)  # type: ignore[method-assign]
    return app


def tokens_of(settings: ServeSettings) -> Tokens:
    """Raises ConfigError."""
    tokens = Tokens(
        client=read_token(settings.token_env, settings.token_file),
        triage=read_token(settings.triage_token_env, settings.triage_token_file),
    )
    if settings.host not in LOOPBACK and tokens.client is None:
        raise ConfigError(
            f"{settings.host} can be reached from elsewhere, and no token is set",
            hint=f"put one into the variable {settings.token_env}, or name a file in "
            "serve.token_file",
        )
    return tokens


def _hosts(settings: ServeSettings) -> frozenset[str]:
    """Which names a request may use; empty for any."""
    if settings.allowed_hosts:
        return frozenset(name.lower() for name in settings.allowed_hosts)
    return frozenset(LOOPBACK_NAMES) if settings.host in LOOPBACK else frozenset()


def _logged(services: Services, metrics: Metrics, facts: Facts) -> None:
    """What does not come to the gate is counted and has its line all the same."""
    metrics.answered(facts)
    write_line(facts, services)


def _no_http(services: Services, metrics: Metrics, client: str, broken: Scope | None) -> bytes:
    """The whole answer to something that is no request, which is logged and counted as one; or to a
    request whose body is `broken`, which has its line from the gate."""
    language = services.settings.language
    if broken is not None:
        facts = facts_in(broken, language)
    else:
        facts = facts_of(Headers({}), client, "OTHER", "", language)
    response = response_of(problems.of_status(HTTPStatus.BAD_REQUEST), facts)
    response.headers.update({"X-Request-ID": facts.request_id, "Connection": "close"})
    facts.status = response.status_code
    if broken is None:
        _logged(services, metrics, facts)
    head = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
    return b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + bytes(response.body)


async def _refused(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    if isinstance(exc, ProblemError):
        problem = exc.problem
    elif exc.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's own, of a body that cannot be read
        problem = problems.invalid("body_no_json")
    else:
        problem = problems.of_status(exc.status_code)
    response = response_of(problem, request.state.facts)
    if exc.headers:
        response.headers.update(exc.headers)  # Allow, of a method that is not
    return response


async def _known(request: Request, exc: Exception) -> Response:
    problem, facts = of_exception(exc), request.state.facts
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        said = one_line(redact_text(f"{type(exc).__name__}: {exc}"))
        logger.warning("request %s: %s", facts.request_id, said)
    return response_of(problem, facts)


async def _wrong(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    return response_of(_problem_of(exc.errors()), request.state.facts)


def _problem_of(mistakes: Any) -> Problem:
    """The first mistake: 422 where the body has another form, 400 where a value cannot be."""
    first = mistakes[0]
    kind = str(first["type"])
    if kind == "json_invalid":
        return problems.invalid("body_no_json")
    names = [part for part in first["loc"][1:] if isinstance(part, str)]
    field = names[-1] if names else None
    if field is None:
        return problems.of_status(422)
    # An unknown name is the client's own; what is no text in it cannot be sent back.
    field = one_line(redact_text({"question": "query"}.get(field, field), 100))
    shape = kind in _FORM or kind.endswith("_type")
    return problems.invalid("field_wrong", 422 if shape else 400, field)
