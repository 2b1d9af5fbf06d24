from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.unit.models.calls import PROCEED, call
from unified_flow.models import ModelReply
from unified_flow.models.reply import parse_reply
from unified_flow.models.scripted import ScriptedModel, ScriptExhaustedError
from unified_flow.turns.results import Reflection


def ask(model: ScriptedModel, phase: str = "reflection") -> ModelReply:
    return asyncio.run(model.complete(call(phase=phase)))


def test_a_list_answers_in_order_whatever_the_phase() -> None:
    model = ScriptedModel([PROCEED, {"decision": "PROCEED", "confidence": 0.5}, "no JSON"])
    assert parse_reply(ask(model).text, Reflection) == PROCEED
    assert parse_reply(ask(model, "planner").text, Reflection).confidence == 0.5
    assert ask(model).text == "no JSON"
    assert model.phases == ["reflection", "planner", "reflection"]


def test_a_dict_answers_by_phase_once_from_a_list_and_ever_again_from_one_answer() -> None:
    model = ScriptedModel({"reflection": ["first", "second"], "planner": "always"})
    assert [ask(model, "planner").text for _ in range(3)] == ["always"] * 3
    assert [ask(model).text, ask(model).text] == ["first", "second"]
    with pytest.raises(ScriptExhaustedError, match="number 3 of phase reflection"):
        ask(model)


def test_a_phase_that_the_script_does_not_know_is_said() -> None:
    with pytest.raises(ScriptExhaustedError, match="no answer for call 1") as caught:
        ask(ScriptedModel({"planner": "x"}))
    assert caught.value.hint
    with pytest.raises(ScriptExhaustedError):
        ask(ScriptedModel([]))


def test_an_exception_is_raised_and_the_call_recorded() -> None:
    model = ScriptedModel([httpx.ConnectError("refused")])
    with pytest.raises(httpx.ConnectError, match="refused"):
        ask(model)
    assert model.calls[0].query == "What is the queue for?"


def test_a_function_answers_what_it_is_asked() -> None:
    model = ScriptedModel({"reflection": lambda c: f"you asked: {c.query}"})
    assert ask(model).text == "you asked: What is the queue for?"


def test_a_reply_goes_out_as_it_is() -> None:
    reply = ModelReply("{}", 3, 4)
    model = ScriptedModel([reply])
    assert ask(model) is reply
    asyncio.run(model.aclose())
    assert model.closed
