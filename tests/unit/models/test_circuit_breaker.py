"""The circuit breaker: its states, moved by hand along a clock of one's own."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.errors import CircuitOpenError, GenerationTimeoutError
from unified_flow.models import ModelCall, ModelReply
from unified_flow.models.circuit_breaker import (
    BoundedModel,
    Circuit,
    CircuitRules,
    failed,
    released,
    succeeded,
    try_acquire,
)
from unified_flow.turns.results import Reflection
from unified_flow.turns.sections import Sections

RULES = CircuitRules(failures=5, window_s=60.0, open_s=30.0)
CALL = ModelCall("reflection", Reflection, "p", "q", Sections(), 0.3, 100)


def after_failures(*times: float) -> Circuit:
    circuit = Circuit()
    for at in times:
        circuit = failed(circuit, at, RULES)
    return circuit


def test_five_failures_a_minute_open_it() -> None:
    assert after_failures(0, 10, 20, 30).opened_at is None
    assert after_failures(0, 10, 20, 30, 59).opened_at == 59


def test_failures_that_are_older_than_a_minute_do_not_count() -> None:
    assert after_failures(0, 20, 40, 60, 80).opened_at is None


def test_open_it_refuses_and_says_for_how_long() -> None:
    circuit = after_failures(0, 0, 0, 0, 10)
    assert try_acquire(circuit, 15, RULES) == (circuit, 25.0)


def test_after_a_while_one_probe_may_try_and_no_other() -> None:
    circuit, refused = try_acquire(after_failures(0, 0, 0, 0, 0), 30, RULES)
    assert (circuit.probing, refused) == (True, None)
    assert try_acquire(circuit, 31, RULES) == (circuit, 30.0)


def test_a_probe_that_succeeds_closes_it() -> None:
    circuit, _ = try_acquire(after_failures(0, 0, 0, 0, 0), 30, RULES)
    assert succeeded(circuit) == Circuit()


def test_a_probe_that_fails_opens_it_anew() -> None:
    circuit, _ = try_acquire(after_failures(0, 0, 0, 0, 0), 30, RULES)
    circuit = failed(circuit, 33, RULES)
    assert try_acquire(circuit, 62, RULES)[1] == 1.0
    assert try_acquire(circuit, 63, RULES)[1] is None


def test_a_probe_that_nobody_waited_for_leaves_it_to_the_next() -> None:
    circuit, _ = try_acquire(after_failures(0, 0, 0, 0, 0), 30, RULES)
    assert try_acquire(released(circuit), 31, RULES)[1] is None


def test_a_call_from_before_tells_nothing_of_an_open_one() -> None:
    circuit = after_failures(0, 0, 0, 0, 0)
    assert succeeded(circuit) == circuit
    assert failed(circuit, 5, RULES) == circuit


@given(st.lists(st.tuples(st.sampled_from(["fail", "succeed", "leave"]), st.floats(0, 40))))
def test_it_never_stays_open_for_longer_than_it_says(steps: list[tuple[str, float]]) -> None:
    circuit, now = Circuit(), 0.0
    for what, pause in steps:
        now += pause
        circuit, wait_s = try_acquire(circuit, now, RULES)
        if wait_s is None:
            if what == "fail":
                circuit = failed(circuit, now, RULES)
            else:
                circuit = succeeded(circuit) if what == "succeed" else released(circuit)
    circuit = released(circuit)
    assert try_acquire(circuit, now + RULES.open_s, RULES)[1] is None


class Flaky:
    """Does what is next in its list: raises it, or replies; None hangs."""

    name = "flaky"

    def __init__(self, *does: Exception | str | None) -> None:
        self.does = list(does)
        self.calls = 0

    async def complete(self, call: ModelCall) -> ModelReply:
        self.calls += 1
        does = self.does.pop(0)
        if does is None:
            await asyncio.Event().wait()
        if isinstance(does, Exception):
            raise does
        return ModelReply(str(does))

    async def aclose(self) -> None:
        return


def refusal(code: int) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://m/v1")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(code))


def outcome(model: BoundedModel) -> Any:
    try:
        return asyncio.run(model.complete(CALL)).text
    except Exception as exc:  # noqa: BLE001 - the test looks at whatever it is
        return type(exc)


def test_a_model_is_left_alone_while_it_keeps_failing() -> None:
    clock = [0.0]
    flaky = Flaky(refusal(500), None, "well")
    model = BoundedModel(flaky, 0.01, CircuitRules(2, 60.0, 30.0), lambda: clock[0])
    assert outcome(model) is httpx.HTTPStatusError
    assert outcome(model) is GenerationTimeoutError
    assert outcome(model) is CircuitOpenError
    assert flaky.calls == 2
    clock[0] = 30.0
    assert outcome(model) == "well"
    assert model.breaker is not None
    assert model.breaker.circuit == Circuit()


def test_a_model_that_only_limits_the_rate_is_well() -> None:
    model = BoundedModel(
        Flaky(refusal(429), refusal(429), "well"), 1.0, CircuitRules(1, 60.0, 30.0)
    )
    assert [outcome(model) for _ in range(3)] == [
        httpx.HTTPStatusError,
        httpx.HTTPStatusError,
        "well",
    ]


def test_without_rules_it_is_always_asked() -> None:
    model = BoundedModel(Flaky(*[refusal(500)] * 8, "well"), 1.0)
    assert [outcome(model) for _ in range(9)][-1] == "well"


def test_whoever_stops_waiting_is_no_failure() -> None:
    async def run() -> BoundedModel:
        model = BoundedModel(Flaky(None), 60.0, CircuitRules(1, 60.0, 30.0))
        call = asyncio.create_task(model.complete(CALL))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return model

    breaker = asyncio.run(run()).breaker
    assert breaker is not None
    assert breaker.circuit == Circuit()
