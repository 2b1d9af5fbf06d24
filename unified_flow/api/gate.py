"""What every request passes first: its id, its host, its token, its size; and, last, its log line.

Plain ASGI, because what stands around a streamed answer must not hold it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unified_flow.api.facts import ASKING, PROBES, Facts, facts_of
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.problem import CLIENT_CLOSED, Problem
from unified_flow.api.problems.rendering import ProblemError, note, response_of
from unified_flow.api.tokens import Tokens
from unified_flow.config.tables import ServeSettings
from unified_flow.engine.failure_report import report_outside_a_phase
from unified_flow.engine.services import Services
from unified_flow.errors.safe_messages import Language

logger = logging.getLogger("unified_flow")

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
OPEN_PATHS = ("/health", "/ready")
_BODIES = ("POST", "PUT", "PATCH")


class Gate:
    """`done` is told of every request once it is answered; `limited` says whether it is one too
    many of its client."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        services: Services,
        tokens: Tokens,
        hosts: frozenset[str],
        done: Callable[[Facts], None],
        limited: Callable[[Facts], Problem | None],
    ) -> None:
        self._app = app
        self._services = services
        self._settings: ServeSettings = services.settings.serve
        self._tokens = tokens
        self._hosts = hosts
        self._done = done
        self._limited = limited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        facts = facts_in(scope, self._services.settings.language)
        answer = _Answer(send, facts, lambda: self._finish(scope, facts))
        try:
            if refusal := self._refusal(scope, headers):
                await response_of(refusal, facts)(scope, receive, answer)
                return
            too_many = self._limited(facts)  # counted before it is read, whatever it holds
            body = await self._body(scope, headers, receive)
            facts.asked = body if facts.path in ASKING else None
            if too_many:
                raise ProblemError(too_many)
            await self._app(scope, _again(body, receive), answer)
        except ProblemError as exc:
            await response_of(exc.problem, facts)(scope, receive, answer)
        except Exception as exc:  # noqa: BLE001 - the document's sixth kind: whatever else there is
            await self._unexpected(exc, scope, receive, answer, facts)
        finally:
            answer.finish()

    def _refusal(self, scope: Scope, headers: Headers) -> Problem | None:
        host = _host(headers.get("host", ""))
        if self._hosts and host not in self._hosts:
            return problems.of_status(
                HTTPStatus.FORBIDDEN
            )  # a page elsewhere that was rebound here
        authorization = headers.get("authorization", "")
        if scope["path"] not in OPEN_PATHS and not self._tokens.opens(authorization):
            return problems.of_status(HTTPStatus.UNAUTHORIZED)
        return None

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, bounded in size and time. Raises ProblemError."""
        if scope["method"] not in _BODIES:
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
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and media != "application/json" and not media.endswith("+json"):
            raise ProblemError(problems.of_status(HTTPStatus.UNSUPPORTED_MEDIA_TYPE))
        return body

    async def _unexpected(
        self, exc: Exception, scope: Scope, receive: Receive, answer: _Answer, facts: Facts
    ) -> None:
        admission = await asyncio.to_thread(
            report_outside_a_phase, exc, "http", facts.request_id, self._services
        )
        problem = problems.unexpected(admission.intervention_id)
        if answer.started:
            logger.error("request %s broke off: %s", facts.request_id, type(exc).__name__)
            note(problem, facts)
            return
        await response_of(problem, facts)(scope, receive, answer)

    def _finish(self, scope: Scope, facts: Facts) -> None:
        route = scope.get("route")
        named = facts.path if facts.path in (*ASKING, *PROBES) else facts.route
        facts.route = getattr(route, "path", named)  # what is refused comes to no route
        facts.status = facts.status or CLIENT_CLOSED
        self._done(facts)
        if not (facts.is_probe and facts.status == HTTPStatus.OK):
            write_line(facts, self._services)  # a probe comes every few seconds


class _Answer:
    """`send`, which adds to every answer what every answer has. Whoever has an answer finds its
    line in the log: `finish` comes before the last of it, once, also if nothing is sent."""

    def __init__(self, send: Send, facts: Facts, finish: Callable[[], None]) -> None:
        self._send = send
        self._facts = facts
        self._finish: Callable[[], None] | None = finish
        self.started = False

    def finish(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._facts.status = self._facts.status or message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._facts.request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.finish()
        await self._send(message)


def facts_in(scope: Scope, language: Language) -> Facts:
    """Those of a request, made when they are first asked for."""
    state = scope.setdefault("state", {})
    if "facts" not in state:
        headers = Headers(scope=scope)
        state["facts"] = facts_of(headers, _client(scope), scope["method"], scope["path"], language)
    facts: Facts = state["facts"]
    return facts


def write_line(facts: Facts, services: Services) -> None:
    log = services.query_log
    try:
        log.append(facts.line(services.policy.name))
    except OSError as exc:
        logger.critical("%s cannot be written: %s", log.path, exc)


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message: dict[str, Any] = dict(await receive())
        if message["type"] == "http.disconnect":
            raise ProblemError(problems.invalid("status_400", CLIENT_CLOSED))
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise ProblemError(problems.of_status(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes | None, receive: Receive) -> Receive:
    """The body that was read, and after it whatever comes."""
    if body is None:
        return receive
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _client(scope: Scope) -> str:
    """Who asks, for limits: the address. Nothing that the client could choose at will."""
    return str(scope["client"][0]) if scope.get("client") else "unknown"


def _host(header: str) -> str:
    name = header.strip().lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]
