"""What every request passes first: its id, host, token, rate and size; its log line comes last.

Plain ASGI: Starlette's BaseHTTPMiddleware would hold a streamed answer back.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import monotonic
from typing import Any

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unified_flow.api import problems
from unified_flow.api.access import LOOPBACK, STRANGERS, Buckets, Rate, Tokens, needs_triage
from unified_flow.api.http_exchange import PROBE_PATHS, QUESTIONS, HttpExchange, response_of
from unified_flow.api.metrics import Metrics
from unified_flow.api.problems import CLIENT_CLOSED, Problem, ProblemError
from unified_flow.config.tables import ServeSettings
from unified_flow.engine.failure_report import report_outside_a_phase
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.logs import REQUESTS, of_request
from unified_flow.engine.telemetry.query_log import RequestLine
from unified_flow.lib.clock import elapsed_ms
from unified_flow.lib.trace_context import HEADER, checked, traceparent
from unified_flow.turns.input_checks import MAX_ID_CHARS

logger = logging.getLogger("unified_flow")
requests = logging.getLogger(REQUESTS)

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
OPEN_PATHS = ("/health", "/ready")
_METHODS_WITH_BODY = ("POST", "PUT", "PATCH")


@dataclass(eq=False)
class Gate:
    app: ASGIApp
    services: Services
    tokens: Tokens
    metrics: Metrics

    def __post_init__(self) -> None:
        self._settings = self.services.settings.serve
        self._buckets = Buckets(Rate.parse(self._settings.rate_limit))
        self._strangers = Buckets(STRANGERS)
        self._hosts = _allowed_hosts(self._settings)
        self._answered: ASGIApp = self._admitted
        if self._settings.cors_origins:  # a preflight carries no token
            self._answered = CORSMiddleware(
                self._admitted,
                allow_origins=self._settings.cors_origins,
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
                expose_headers=["X-Request-ID", "Retry-After"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = HttpExchange.begin(scope, self.services.settings.language)

        async def respond(message: Message) -> None:
            """`send`, with the headers of every response. The exchange is logged before the last
            byte goes out, so that a client that has its answer finds the line."""
            if message["type"] == "http.response.start":
                exchange.status = exchange.status or message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = exchange.request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                self._finish(scope, exchange)
            await send(message)

        try:
            await self._answered(scope, receive, respond)
        finally:
            self._finish(scope, exchange)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application's answer, or why there is none."""
        headers = Headers(scope=scope)
        exchange: HttpExchange = scope["state"]["exchange"]
        traceparent.set(checked(headers.get(HEADER, "")))
        # The turns that another request lets go on may be thousands.
        of_request.set(exchange.failures if exchange.is_question else None)
        try:
            if refusal := self._refusal(headers, exchange):
                raise ProblemError(refusal)
            # Counted before the body is read, whatever it holds, unless it is to name the user.
            in_body = exchange.caller is not None and "x-user" not in headers
            limited = None if in_body else self._limited(exchange, headers.get("x-user", ""))
            body = await self._body(scope, headers, receive)
            exchange.question_body = body if exchange.is_question else None
            if in_body:
                limited = self._limited(exchange, _user_of(scope, body))
            if limited:
                raise ProblemError(limited)
            await self.app(scope, _replayed(body, receive), send)
        except ProblemError as exc:
            await response_of(exc.problem, exchange)(scope, receive, send)
        except Exception as exc:  # noqa: BLE001 - the document's sixth kind: anything else
            of_request.set(exchange.failures)
            admission = await asyncio.to_thread(
                report_outside_a_phase, exc, "http", exchange.request_id, self.services
            )
            problem = problems.unexpected(admission.intervention_id)
            if exchange.status:
                logger.error("request %s broke off: %s", exchange.request_id, type(exc).__name__)
                exchange.record(problem)
                return
            await response_of(problem, exchange)(scope, receive, send)

    def _refusal(self, headers: Headers, exchange: HttpExchange) -> Problem | None:
        host = _host_name(headers.get("host", ""))
        if self._hosts and host not in self._hosts:  # DNS rebinding by a page elsewhere
            return problems.of_status(HTTPStatus.FORBIDDEN)
        if exchange.is_question and exchange.method == "GET" and self._is_another_sites(headers):
            return problems.of_status(HTTPStatus.FORBIDDEN)
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may end the body elsewhere, and take its rest for a request (RFC 9112, 6.1).
            return replace(problems.of_status(HTTPStatus.BAD_REQUEST), closes=True)
        authorization = headers.get("authorization", "")
        exchange.caller = self.tokens.client.client_of(authorization)
        path = exchange.path
        if path.endswith("\n"):  # a route's `$` also matches before it, and no path here does
            return problems.of_status(HTTPStatus.NOT_FOUND)
        if needs_triage(path) and not self.tokens.triage.is_set:
            return problems.of_status(HTTPStatus.FORBIDDEN)
        if path not in OPEN_PATHS and not self.tokens.allows(authorization, path):
            return problems.unauthorized(self._strangers.take(exchange.client, monotonic()))
        return None

    def _is_another_sites(self, headers: Headers) -> bool:
        """Whether a page of another site has a browser ask: a GET has no preflight, and an image
        could ask, too, which names no origin (Fetch Metadata)."""
        origin, allowed = headers.get("origin"), self._settings.cors_origins
        if origin in allowed or "*" in allowed:
            return False
        site = headers.get("sec-fetch-site")
        return origin is not None or site in ("cross-site", "same-site")

    def _limited(self, exchange: HttpExchange, user: str) -> Problem | None:
        """Only questions count: those of an address, or of each user of a client that has a
        token, which is trusted to name its users."""
        if not exchange.is_question or (rate := self._buckets.rate) is None:
            return None
        named = exchange.caller is not None
        client = f"{exchange.caller}\0{user[:MAX_ID_CHARS]}" if named else exchange.client
        wait_s = self._buckets.take(client, monotonic())
        return problems.limited(f"user_per_{rate.per}", rate, wait_s) if wait_s else None

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, bounded in size and time. Raises ProblemError."""
        if scope["method"] not in _METHODS_WITH_BODY:
            return None
        most = self._settings.max_body_bytes
        announced = headers.get("content-length", "0")
        if announced.isdecimal() and int(announced[:15]) > most:
            raise ProblemError(problems.of_status(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
        try:
            async with asyncio.timeout(self._settings.body_timeout_s):
                body = await _read(receive, most)
        except TimeoutError as exc:
            raise ProblemError(problems.of_status(HTTPStatus.REQUEST_TIMEOUT)) from exc
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and media_type != "application/json" and not media_type.endswith("+json"):
            raise ProblemError(problems.of_status(HTTPStatus.UNSUPPORTED_MEDIA_TYPE))
        return body

    def _finish(self, scope: Scope, exchange: HttpExchange) -> None:
        """Count the exchange and write its line, once; a healthy probe, which comes every few
        seconds, has none.

        Beyond a number (`REFUSALS_LOGGED`) of one status what was refused without a turn is counted
        only, and so are preflights: whoever may send could fill the disk with it. What failed
        meanwhile has an error record of its own, which names the answer, too.
        """
        if exchange.logged:
            return
        exchange.logged = True
        if route := scope.get("route"):
            exchange.route = route.path
        elif exchange.path in (*QUESTIONS, *PROBE_PATHS):  # it was refused on its way there
            exchange.route = exchange.path
        exchange.status = exchange.status or CLIENT_CLOSED
        self.metrics.count(exchange)
        problem = exchange.problem
        failed = exchange.failures.answered(
            status_code=exchange.status,
            code=problem.code if problem is not None else None,
            intervention_id=problem.intervention_id if problem is not None else None,
            route=exchange.route,
            duration_ms=elapsed_ms(exchange.started),
        )
        if exchange.is_probe and exchange.status == HTTPStatus.OK:
            return
        cheap = problem is not None or exchange.method == "OPTIONS"
        if (
            exchange.turn_line is None
            and cheap
            and self.metrics.refusals.take(str(exchange.status), monotonic())
        ):
            self.metrics.unlogged.inc()
            return
        line = exchange.line(self.services.policy.name)
        if not failed:
            _log_request(exchange, line)
        self.services.query_log.append(line)


def _log_request(exchange: HttpExchange, line: RequestLine) -> None:
    failed = exchange.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    level = logging.ERROR if failed else logging.INFO
    if not requests.isEnabledFor(level):
        return  # nobody wants them, and each request would pay
    about = {
        "service": "http",
        "component": "http",
        "operation": exchange.route,
        "status_code": exchange.status,
        "error_type": line.type,
        "duration_ms": elapsed_ms(exchange.started),
        **line.model_dump(include={"request_id", "session_id", "turn_id", "intervention_id"}),
    }
    said = (exchange.method, exchange.route, exchange.status)
    requests.log(level, "%s %s: %s", *said, extra=about)


def _allowed_hosts(settings: ServeSettings) -> frozenset[str]:
    """The names that a request may use as Host; empty: any."""
    if settings.allowed_hosts:
        return frozenset(name.lower() for name in settings.allowed_hosts)
    return frozenset(LOOPBACK_NAMES) if settings.host in LOOPBACK else frozenset()


def _host_name(header: str) -> str:
    name = header.strip().lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]


def _user_of(scope: Scope, body: bytes | None) -> str:
    """The user that a question names: `user_id`, or `user` in OpenAI's form."""
    if body is None:
        return QueryParams(scope["query_string"]).get("user_id", "")
    try:
        question = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    named = question if isinstance(question, dict) else {}
    user = named.get("user_id") or named.get("user")
    return user if isinstance(user, str) else ""


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message: dict[str, Any] = dict(await receive())
        if message["type"] == "http.disconnect":
            raise ProblemError(problems.invalid("status_400", CLIENT_CLOSED))
        body += message.get("body", b"")
        if len(body) > most:
            raise ProblemError(problems.of_status(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes | None, receive: Receive) -> Receive:
    """The body that was read, then whatever comes."""
    if body is None:
        return receive
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
