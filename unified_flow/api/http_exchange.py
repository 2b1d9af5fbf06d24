"""One HTTP exchange: what is known of the request, its problem as a response, its log line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, get_args

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Scope

from unified_flow.api.problems import KIND_OF_CODE, Problem
from unified_flow.engine.telemetry.logs import FailureRecords
from unified_flow.engine.telemetry.query_log import HttpLine, RequestLine
from unified_flow.errors.safe_messages import Language
from unified_flow.lib.clock import elapsed_ms
from unified_flow.turns.input_checks import new_request_id

PROBE_PATHS = ("/health", "/ready", "/metrics", "/openapi.json")
QUESTIONS = {"/query": "POST", "/v1/chat/completions": "POST", "/query/stream": "GET"}
_REQUEST_ID = re.compile(r"(?!\d+\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_RANGE = re.compile(r"([a-z]+)[\w-]*\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?")
_LANGUAGES: tuple[Language, ...] = get_args(Language)
_OPENAI_TYPES = {"VALIDATION_ERROR": "invalid_request_error", "RATE_LIMITED": "rate_limit_error"}


@dataclass
class HttpExchange:
    """`caller` is the name of the token that it came with. `client` (the address, for limits) and
    `question_body` (to recognise a retry) are written nowhere. `turn_line` is the turn's line of
    the query log; it waits for the response. `problem` may also be an error event of a stream whose
    `status` is 200. A request whose id the client has sent is `repeatable`."""

    request_id: str
    client: str
    method: str
    path: str
    language: Language
    started: float
    repeatable: bool = False
    route: str = "unmatched"
    status: int = 0
    problem: Problem | None = None
    degraded: bool = False
    turn_line: RequestLine | None = None
    question_body: bytes | None = None
    caller: str | None = None
    logged: bool = False
    failures: FailureRecords = field(default_factory=FailureRecords)

    @classmethod
    def begin(cls, scope: Scope, default: Language) -> HttpExchange:
        """That of a request, in its state. An id that is not well formed is replaced."""
        headers, method = Headers(scope=scope), scope["method"]
        request_id = headers.get("x-request-id", "")
        repeatable = _REQUEST_ID.match(request_id) is not None
        exchange = cls(
            request_id=request_id if repeatable else new_request_id(),
            repeatable=repeatable,
            # A limit counts by address: the client could choose anything else.
            client=str(scope["client"][0]) if scope.get("client") else "unknown",
            method=method if method.isalpha() and len(method) < 10 else "OTHER",
            path=scope["path"],
            language=preferred_language(headers.get("accept-language", ""), default),
            started=perf_counter(),
        )
        scope.setdefault("state", {})["exchange"] = exchange
        return exchange

    @property
    def speaks_openai(self) -> bool:
        """Whether an OpenAI client reads the response, in that API's shape."""
        return self.path.startswith("/v1/")

    @property
    def is_question(self) -> bool:
        return QUESTIONS.get(self.path) == self.method

    @property
    def is_probe(self) -> bool:
        return self.path in PROBE_PATHS

    def set_turn_line(self, line: RequestLine) -> None:
        """The turn's line waits for what HTTP adds to it, so that a request is one line."""
        self.turn_line = line

    def record(self, problem: Problem) -> None:
        self.problem = problem
        self.degraded = problem.degraded

    def line(self, policy: str) -> RequestLine:
        """The log line. It holds no path, no address and no words of the request."""
        problem = self.problem
        line = self.turn_line or RequestLine.without_turn(
            self.request_id, policy, refused=problem is not None
        )
        http = HttpLine(
            method=self.method,
            route=self.route,
            status=self.status,
            duration_ms=elapsed_ms(self.started),
            client=self.caller,
        )
        # Not the id of the request which began the turn.
        changes = {"request_id": self.request_id, "degraded": self.degraded, "http": http}
        if problem is not None:
            changes |= {"error": True, "type": problem.kind, "code": problem.code}
            changes["intervention_id"] = line.intervention_id or problem.intervention_id
        elif line.code is not None:
            # An answered turn's line names the class of its error; a client knows kinds.
            changes |= {"error": True, "type": KIND_OF_CODE[line.code]}
        return line.model_copy(update=changes)


def response_of(problem: Problem, exchange: HttpExchange) -> JSONResponse:
    """The response; the exchange records the problem."""
    exchange.record(problem)
    return JSONResponse(body_of(problem, exchange), problem.status, problem.headers)


def body_of(problem: Problem, exchange: HttpExchange) -> dict[str, Any]:
    """The envelope, or OpenAI's form of it."""
    envelope = problem.envelope(exchange.request_id, exchange.language)
    return {"error": _as_openai(problem, envelope)} if exchange.speaks_openai else envelope


def _as_openai(problem: Problem, envelope: dict[str, Any]) -> dict[str, Any]:
    """That API's four fields, with our code; the rest of the envelope beside them."""
    details = dict(problem.details or {})
    fallback = ("answer", "sources", "metadata")
    rest: dict[str, Any] = {key: envelope[key] for key in fallback if key in envelope}
    return {
        "message": envelope["message"],
        "type": _OPENAI_TYPES.get(problem.code, "server_error"),
        "param": details.get("field"),
        "code": problem.code,
        "request_id": envelope["request_id"],
        "details": details,
        **rest,
    }


def preferred_language(accept_language: str, default: Language) -> Language:
    """The header's favourite among ours, without regions (RFC 9110, 12.5.4); `default` if it has
    none."""
    qualities: dict[str, float] = {}
    for tag, quality in _RANGE.findall(accept_language[:500].lower()):
        qualities[tag] = max(float(quality or 1), qualities.get(tag, 0.0))
    return max((default, *_LANGUAGES), key=lambda language: qualities.get(language, 0.0))
