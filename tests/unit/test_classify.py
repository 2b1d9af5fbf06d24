"""The table of system.md, "Errors", and that nothing falls through it unseen."""

from __future__ import annotations

import inspect
import json
import sqlite3

import httpx
import pytest

from unified_flow import errors
from unified_flow.errors import CaptchaError, PathRefusedError
from unified_flow.errors.classification import Stage, classify
from unified_flow.phases import errors as phase_errors

REQUEST = httpx.Request("GET", "http://example.test")


def _status(code: int) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(code))


ROWS: list[tuple[Exception, Stage, str, str, str]] = [
    (httpx.ReadTimeout("x"), "answer_pipeline", "tool_timeout", "network", "INTERNAL_ERROR"),
    (httpx.ReadTimeout("x"), "llm", "llm_error", "llm", "LLM_ERROR"),
    (_status(500), "answer_pipeline", "http_error", "network", "INTERNAL_ERROR"),
    (_status(500), "llm", "llm_error", "llm", "LLM_ERROR"),
    (_status(429), "answer_pipeline", "http_error", "network", "RATE_LIMITED"),
    (_status(429), "llm", "llm_error", "llm", "RATE_LIMITED"),
    (_status(403), "answer_pipeline", "permission_error", "agent", "INTERNAL_ERROR"),
    (_status(401), "llm", "llm_error", "llm", "LLM_ERROR"),
    (httpx.ConnectError("x"), "answer_pipeline", "http_error", "network", "INTERNAL_ERROR"),
    (httpx.ConnectError("x"), "llm", "llm_error", "llm", "LLM_ERROR"),
    (json.JSONDecodeError("x", "", 0), "llm", "parse_error", "llm", "LLM_ERROR"),
    (errors.SchemaMismatchError("x"), "llm", "parse_error", "llm", "LLM_ERROR"),
    (errors.ToolNotFoundError("x"), "answer_pipeline", "config_error", "agent", "INTERNAL_ERROR"),
    (errors.RecipeError("x"), "answer_pipeline", "config_error", "agent", "INTERNAL_ERROR"),
    (PermissionError("x"), "answer_pipeline", "permission_error", "agent", "INTERNAL_ERROR"),
    (
        PathRefusedError("x"),
        "answer_pipeline",
        "permission_error",
        "agent",
        "INTERNAL_ERROR",
    ),
    (CaptchaError("x"), "answer_pipeline", "permission_error", "agent", "INTERNAL_ERROR"),
    (errors.HumanNeededError("x"), "answer_pipeline", "escalation", "agent", "INTERNAL_ERROR"),
    (errors.RetrievalError("x"), "retriever", "retrieval_error", "database", "RETRIEVAL_ERROR"),
    (sqlite3.OperationalError("x"), "retriever", "retrieval_error", "database", "RETRIEVAL_ERROR"),
    (ValueError("x"), "answer_pipeline", "unknown_error", "unknown", "INTERNAL_ERROR"),
    (ValueError("x"), "llm", "unknown_error", "unknown", "LLM_ERROR"),
    (KeyError("x"), "retriever", "unknown_error", "unknown", "RETRIEVAL_ERROR"),
]


@pytest.mark.parametrize(("exc", "stage", "category", "kind", "code"), ROWS)
def test_the_table(exc: Exception, stage: Stage, category: str, kind: str, code: str) -> None:
    meaning = classify(exc, stage)
    assert (meaning.category, meaning.error_type, meaning.code) == (category, kind, code)


@pytest.mark.parametrize(
    ("category_of", "type_"),
    [
        (PermissionError("x"), "permission"),
        (errors.NotJSONError("x", "", 0), "schema_failure"),
        (errors.RetrievalError("x"), "error"),
        (RuntimeError("x"), "error"),
        (errors.ToolDeniedError("x"), "permission"),
        (CaptchaError("x"), "captcha"),
        (errors.HumanNeededError("x"), "escalation"),
        (errors.LimitReachedError("retry", 1, 1), "limit_exceeded"),
    ],
)
def test_the_type_of_the_intervention(category_of: Exception, type_: str) -> None:
    assert classify(category_of, "answer_pipeline").intervention_type == type_


def _raised_by_httpx() -> list[type[Exception]]:
    found = [c for _, c in inspect.getmembers(httpx, inspect.isclass) if issubclass(c, Exception)]
    base = (httpx.HTTPError, httpx.RequestError, httpx.CookieConflict)
    return [kind for kind in found if kind not in base]


@pytest.mark.parametrize("kind", _raised_by_httpx(), ids=lambda kind: kind.__name__)
def test_no_exception_of_httpx_is_unknown(kind: type[Exception]) -> None:
    exc = kind.__new__(kind)
    if kind is httpx.HTTPStatusError:
        exc = _status(500)
    assert classify(exc, "llm").category == "llm_error"
    assert classify(exc, "answer_pipeline").category in {"http_error", "tool_timeout"}


def _own() -> list[type[Exception]]:
    every = [
        kind
        for module in (errors, phase_errors)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
    ]
    return [kind for kind in every if issubclass(kind, errors.UnifiedFlowError)]


@pytest.mark.parametrize("kind", _own(), ids=lambda kind: kind.__name__)
def test_every_error_of_the_flow_says_what_it_means(kind: type[Exception]) -> None:
    of_its_own = kind.__dict__.get("__doc__")
    named_by_its_phase = kind.__bases__ == (phase_errors.PhaseError,)
    assert of_its_own or named_by_its_phase
