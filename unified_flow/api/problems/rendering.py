"""A problem as a response: the envelope, RFC 9457's form on request, or OpenAI's."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from unified_flow.api.facts import PROBLEM_JSON, Facts
from unified_flow.api.problems.problem import Problem

_OPENAI_TYPES = {
    "VALIDATION_ERROR": "invalid_request_error",
    "RATE_LIMITED": "rate_limit_error",
}


class ProblemError(HTTPException):
    """Raised by a route; `app.py` answers. An HTTPException, so that FastAPI lets it pass."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status)
        self.problem = problem


def response_of(problem: Problem, facts: Facts) -> JSONResponse:
    """The answer, and what the log is to say of it."""
    note(problem, facts)
    return JSONResponse(
        content(problem, facts),
        problem.status,
        headers_of(problem),
        PROBLEM_JSON if facts.problem_json and not facts.for_openai else None,
    )


def note(problem: Problem, facts: Facts) -> None:
    facts.kind, facts.code = problem.kind, problem.code
    facts.problem_status = problem.status
    facts.intervention_id = problem.intervention_id
    facts.degraded = problem.degraded


def headers_of(problem: Problem) -> dict[str, str]:
    headers: dict[str, str] = {}
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after_s)))
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def content(problem: Problem, facts: Facts) -> dict[str, Any]:
    body = problem.body(facts.request_id, facts.language)
    if facts.for_openai:
        return {"error": _for_openai(problem, body)}
    return _rfc_9457(problem, body) if facts.problem_json else body


def _for_openai(problem: Problem, body: dict[str, Any]) -> dict[str, Any]:
    """Its four fields, with our code; what else the envelope says stands beside them."""
    details = dict(problem.details or {})
    fallback = ("answer", "sources", "metadata")
    rest: dict[str, Any] = {key: body[key] for key in fallback if key in body}
    return {
        "message": body["message"],
        "type": _OPENAI_TYPES.get(problem.code, "server_error"),
        "param": details.get("field"),
        "code": problem.code,
        "request_id": body["request_id"],
        "details": details,
        **rest,
    }


def _rfc_9457(problem: Problem, body: dict[str, Any]) -> dict[str, Any]:
    """`type`, `title`, `status`, `detail` as the RFC means them; the rest as extensions."""
    own = {key: value for key, value in body.items() if key not in ("type", "detail")}
    return {
        "type": f"/errors#{problem.code}",
        "title": problem.kind,
        "status": problem.status,
        "detail": body["message"],
        "instance": f"urn:request:{body['request_id']}",
    } | own
