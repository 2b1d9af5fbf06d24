"""What the policies decide: pure functions of a failure."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest

from unified_flow import errors
from unified_flow.config.tables import GracefulSettings
from unified_flow.errors.classification import Stage, classify, kind_of, retry_after_s
from unified_flow.policies import Action, FailFast, Failure, Graceful, Policy, Retry, Silent, Stop

REQUEST = httpx.Request("POST", "http://m/v1")


def refusal(code: int, **headers: str) -> httpx.HTTPStatusError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(code, headers=named)
    return httpx.HTTPStatusError("no", request=REQUEST, response=response)


def failure(error: Exception, stage: Stage = "llm", phase: str = "planner") -> Failure:
    return Failure(phase, None, 1, classify(error, stage), error, model="first", left_s=4.0)


def locked() -> errors.RetrievalError:
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorname = "SQLITE_BUSY"
    error = errors.RetrievalError("locked")
    error.__cause__ = cause
    return error


def action(policy: Policy, known: Failure) -> Action:
    return policy.again(known) or policy.ends(known)


TIMEOUT = errors.GenerationTimeoutError("3 s")
GONE = errors.RetrievalError("there is no index")
UP = errors.PipelineTimeoutError("5 s")

OUTSIDE_THE_TABLE = (
    failure(errors.ConfigError("no key"), "llm"),
    failure(errors.ToolNotFoundError("x"), "answer_pipeline", "coordinator"),
    failure(errors.DraftRejectedError("x"), "answer_pipeline", "validation"),
    failure(refusal(429), "answer_pipeline", "coordinator"),
    failure(ZeroDivisionError(), "answer_pipeline"),
    failure(errors.RetrievalError("the session store"), "answer_pipeline", "save"),
)


@pytest.mark.parametrize("outside", OUTSIDE_THE_TABLE, ids=lambda f: type(f.error).__name__)
def test_what_the_table_does_not_name_halts_as_under_fail_fast(outside: Failure) -> None:
    policy = Graceful(GracefulSettings(retries=5, failover="second"))
    assert action(policy, outside) == Stop("halt") == action(FailFast(), outside)


def test_a_loop_without_end_degrades_and_is_not_tried_again() -> None:
    endless = failure(errors.LimitReachedError("model_calls", 25, 25), "answer_pipeline")
    policy = Graceful(GracefulSettings(retries=5, failover="second"))
    assert action(policy, endless) == Stop("degrade")
    assert action(FailFast(), endless) == Stop("halt")


@pytest.mark.parametrize("known", [failure(TIMEOUT), failure(GONE, "retriever"), failure(UP)])
def test_what_the_table_names_degrades_at_once(known: Failure) -> None:
    assert action(Graceful(GracefulSettings()), known) == Stop("degrade")
    assert action(FailFast(), known) == Stop("halt")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("", 1.0),
        ("soon", 1.0),
        ("-3", 1.0),
        ("٣", 1.0),
        ("Sat, 21 Nov 2026 10:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 09:00:00 GMT", 0.0),
        ("Wed, 21 Oct 2037 07:28:00 GMT", 3600.0),
        ("999999999", 3600.0),
    ],
)
def test_the_servers_own_word_says_when_to_ask_again(said: str, seconds: float) -> None:
    at = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
    response = httpx.Response(429, headers=[(b"retry-after", said.encode())])
    error = httpx.HTTPStatusError("no", request=REQUEST, response=response)
    assert retry_after_s(error, at) == seconds


def test_who_knows_when_to_ask_again() -> None:
    assert retry_after_s(refusal(503, retry_after="7")) == 7.0
    assert retry_after_s(refusal(503)) is None
    assert retry_after_s(refusal(503, retry_after="soon")) is None
    assert retry_after_s(refusal(500, retry_after="7")) is None
    assert retry_after_s(TIMEOUT) is None
    assert retry_after_s(errors.CircuitOpenError("open", retry_after_s=12.0)) == 12.0


KINDS = [
    (failure(TIMEOUT), "transient"),
    (failure(httpx.ConnectError("refused")), "transient"),
    (failure(httpx.ReadTimeout("slow")), "transient"),
    (failure(refusal(503)), "transient"),
    (failure(locked(), "retriever"), "transient"),
    (failure(errors.ToolTimeoutError("slow"), "retriever"), "transient"),
    (failure(refusal(429)), "recoverable"),
    (failure(errors.CutReplyError("half")), "recoverable"),
    (failure(errors.NotJSONError("no", "x", 0)), "recoverable"),
    (failure(refusal(401)), "permanent"),
    (failure(refusal(404)), "permanent"),
    (failure(GONE, "retriever"), "permanent"),
    (failure(errors.CircuitOpenError("open", retry_after_s=1.0)), "recoverable"),
    (failure(UP), "transient"),
    (failure(errors.QueueFullError("full")), "recoverable"),
]


@pytest.mark.parametrize(("what", "kind"), KINDS, ids=lambda x: getattr(x, "error", x).__repr__())
def test_three_kinds_of_errors(what: Failure, kind: str) -> None:
    assert kind_of(what.error) == kind


def test_a_failure_that_may_pass_is_tried_again_each_time_after_twice_the_wait() -> None:
    policy = Graceful(GracefulSettings(retries=3, backoff_s=0.2))
    waits = [action(policy, replace(failure(TIMEOUT), attempt=n)) for n in (1, 2, 3, 4)]
    assert waits == [Retry(0.2), Retry(0.4), Retry(0.8), Stop("degrade")]


def test_no_number_of_attempts_is_too_many_to_count() -> None:
    policy = Graceful(GracefulSettings(retries=100_000))
    assert action(policy, replace(failure(TIMEOUT), attempt=5_000)) == Stop("degrade")


def test_a_rate_limit_is_waited_for_as_long_as_the_server_says() -> None:
    policy = Graceful(GracefulSettings(retries=1, backoff_s=0.2))
    assert action(policy, failure(refusal(429, retry_after="2"))) == Retry(2.0)


def test_nothing_is_tried_again_that_would_come_too_late() -> None:
    policy = Graceful(GracefulSettings(retries=3, backoff_s=5.0))
    assert action(policy, failure(TIMEOUT)) == Stop("degrade")


def test_what_may_pass_but_not_within_the_turn_is_not_tried_again() -> None:
    policy = Graceful(GracefulSettings(retries=3, backoff_s=0.2))
    for later in (UP, errors.CircuitOpenError("open", retry_after_s=0.5)):
        assert isinstance(action(policy, failure(later)), Stop)


def test_a_permanent_failure_is_not_tried_again() -> None:
    policy = Graceful(GracefulSettings(retries=3))
    assert action(policy, failure(refusal(401))) == Stop("degrade")


def test_the_other_model_is_asked_once_the_tries_are_used_up() -> None:
    policy = Graceful(GracefulSettings(retries=1, backoff_s=0.2, failover="second"))
    first = failure(refusal(503))
    assert action(policy, first) == Retry(0.2)
    assert action(policy, replace(first, attempt=2)) == Retry(0.0, "second")
    assert action(policy, replace(first, attempt=3, model="second")) == Stop("degrade")


def test_the_other_model_is_asked_at_once_where_trying_again_does_not_help() -> None:
    policy = Graceful(GracefulSettings(retries=1, failover="second"))
    assert action(policy, failure(refusal(401))) == Retry(0.0, "second")


def test_no_model_is_asked_for_a_search_that_failed() -> None:
    policy = Graceful(GracefulSettings(failover="second"))
    assert action(policy, failure(GONE, "retriever")) == Stop("degrade")


def test_silence_comes_after_two_waits() -> None:
    first = replace(failure(refusal(503)), left_s=None)
    said = [action(Silent(), replace(first, attempt=n)) for n in (1, 2, 3, 4)]
    assert said == [Retry(2.0), Retry(4.0), Stop("silence"), Stop("silence")]


@pytest.mark.parametrize(
    ("named", "said"),
    [("1", Retry(2.0)), ("7", Retry(7.0)), ("59", Retry(59.0)), ("3600", Stop("silence"))],
)
def test_a_silent_turn_waits_as_long_as_the_server_says_within_reason(
    named: str, said: Retry | Stop
) -> None:
    limited = replace(failure(refusal(429, retry_after=named)), left_s=None)
    assert action(Silent(), limited) == said
