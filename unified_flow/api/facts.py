"""What is known of one HTTP request while it is answered, and its line in the query log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import perf_counter

from starlette.datastructures import Headers

from unified_flow.api.problems.problem import KIND_OF_CODE
from unified_flow.engine.telemetry.query_log import HttpLine, RequestLine
from unified_flow.errors.safe_messages import Language
from unified_flow.lib.clock import elapsed_ms
from unified_flow.turns.input_checks import new_request_id

PROBLEM_JSON = "application/problem+json"
_WELL_FORMED = re.compile(r"(?!\d+\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
PROBES = ("/health", "/ready", "/metrics", "/openapi.json")
ASKING = ("/query", "/v1/chat/completions")


@dataclass
class Facts:
    """`client` tells clients apart, for limits; it is never written anywhere. `turn_line` is the
    turn's line of the query log, which waits for the answer to be sent. `asked` is the body of a
    question, for knowing it again; it is never written anywhere either."""

    request_id: str
    client: str
    method: str
    path: str
    language: Language
    problem_json: bool
    started: float
    route: str = "unmatched"
    status: int = 0
    problem_status: int = 0  # that of an error event, too
    kind: str | None = None
    code: str | None = None
    intervention_id: str | None = None
    degraded: bool = False
    turn_line: RequestLine | None = None
    asked: bytes | None = None

    @property
    def for_openai(self) -> bool:
        """Whether an OpenAI client reads the answer, in its own shape."""
        return self.path.startswith("/v1/")

    @property
    def is_probe(self) -> bool:
        return self.path in PROBES

    def keep(self, line: RequestLine) -> None:
        """The turn's line waits for what HTTP makes of it, so that a request is one line."""
        self.turn_line = line

    def line(self, policy: str) -> RequestLine:
        """No path as it was sent, no address, no words: only what links and counts."""
        refused = self.code is not None
        line = self.turn_line or RequestLine.without_turn(self.request_id, policy, refused=refused)
        return line.over_http(
            HttpLine(
                method=self.method,
                route=self.route,
                status=self.status,
                duration_ms=elapsed_ms(self.started),
            ),
            request_id=self.request_id,
            degraded=self.degraded,
            # Of a turn that was answered all the same the class of its error; a client knows kinds.
            error_type=self.kind or KIND_OF_CODE.get(line.code or ""),
            code=self.code,
            intervention_id=self.intervention_id,
        )


def facts_of(headers: Headers, client: str, method: str, path: str, default: Language) -> Facts:
    """Before anything is trusted: a request id that is not well formed is replaced."""
    given = headers.get("x-request-id", "")
    return Facts(
        request_id=given if _WELL_FORMED.match(given) else new_request_id(),
        client=client,
        method=method if method.isalpha() and len(method) < 10 else "OTHER",
        path=path,
        language=preferred(headers.get("accept-language", ""), default),
        problem_json=PROBLEM_JSON in headers.get("accept", "").lower(),
        started=perf_counter(),
    )


def preferred(accept_language: str, default: Language) -> Language:
    """The language that the header likes best, of those there are (RFC 9110, 12.5.4)."""
    liked: dict[Language, float] = {}
    for part in accept_language[:500].lower().split(","):
        tag, _, parameter = part.strip().partition(";")
        quality = _quality(parameter)
        names: tuple[Language, ...] = ("en", "sv")
        for name in names:
            if tag == name or tag.startswith(f"{name}-"):
                liked[name] = max(liked.get(name, 0.0), quality)
    best = max(liked.values(), default=0.0)
    if best == 0.0 or liked.get(default, 0.0) == best:
        return default
    return max(liked, key=lambda name: liked[name])


def _quality(parameter: str) -> float:
    found = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", parameter)
    return float(found[1]) if found else 1.0
