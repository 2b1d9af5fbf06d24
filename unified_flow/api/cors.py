"""Pages of other sites that may ask (`cors_origins`). A preflight is answered here, before any
token is looked at, and is a request like any other to the log and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from unified_flow.api.facts import Facts, facts_of
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.rendering import response_of
from unified_flow.errors.safe_messages import Language


class Cors(CORSMiddleware):
    """`answered` is told of every preflight. One that is refused gets the envelope."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        origins: Sequence[str],
        answered: Callable[[Facts], None],
        language: Language,
    ) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
        self._answered = answered
        self._language = language

    def preflight_response(self, request_headers: Headers) -> Response:
        facts = facts_of(request_headers, "", "OPTIONS", "", self._language)
        response = super().preflight_response(request_headers)
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            response = response_of(problems.of_status(HTTPStatus.FORBIDDEN), facts)
        response.headers["X-Request-ID"] = facts.request_id
        facts.status = response.status_code
        self._answered(facts)
        return response
