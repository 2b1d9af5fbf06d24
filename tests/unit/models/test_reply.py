from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unified_flow.errors import CutReplyError, EmptyReplyError, NotJSONError, SchemaMismatchError
from unified_flow.models.reply import parse_reply
from unified_flow.turns.results import Draft, Plan, Reflection, Verdict

OBJECT = '{"decision": "PROCEED", "confidence": 0.9}'
OTHER = '{"decision": "PROCEED", "confidence": 0.1}'


@pytest.mark.parametrize(
    "text",
    [
        OBJECT,
        f"\n  {OBJECT}\n\n",
        f"\ufeff{OBJECT}",
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```\n",
        f"Sure! Here is the answer:\n\n{OBJECT}\n\nLet me know if you need more.",
        f"Here you go:\n```json\n{OBJECT}\n```\nAnything else?",
        f"For {{name}} I decided {OBJECT}",
        f"{OBJECT}\n{OBJECT}",
        f"Draft: {OBJECT}\nFinal:\n```json\n{OBJECT}\n```",
        f"<think>Perhaps {OTHER}? No.</think>\n{OBJECT}",
        f"<think>one</think><THINK>two</THINK>{OBJECT}",
        f"<reasoning>\n{{broken\n</reasoning>\n```json\n{OBJECT}\n```",
        f"The question is clear {{I think}}, hence {OTHER}\n</think>\n\n{OBJECT}",
    ],
)
def test_the_one_object_is_found(text: str) -> None:
    assert parse_reply(text, Reflection).confidence == 0.9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I cannot answer that.", "holds no JSON object"),
        (f"{OBJECT}\n{OTHER}", "2 JSON objects that differ"),
        ('{"decision": "PROCEED", "confi', "is cut"),
        ('{"decision": "PROCEED", "confidence": 0.9', "is cut"),
        ('{"decision": "PROCEED",', "is cut"),
        # The inner object of a broken one must never be taken for the answer.
        ('{"outer": {"decision": "PROCEED", "confidence": 0.9}, "x": ', "is cut"),
        ("{'outer': " + OBJECT + "}", "is broken"),
        ("{outer: " + OBJECT + "}", "is broken"),
        ('{"decision": "PROCEED", "confidence": 0.9,}', "is broken"),
        ('{"decision": "PROCEED", "confidence": NaN}', "NaN is no JSON number"),
        ('{"decision": "PROCEED", "confidence": -Infinity}', "-Infinity is no JSON number"),
        ('{"decision": "PROCEED", "confidence": 1e999}', "too large for a number"),
        ('{"decision": "PROCEED", "decision": "CLARIFY"}', "'decision' has two values"),
        ('{"decision": "PROCEED", "confidence": ' + "9" * 5000 + "}", "is broken"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"decision": "\\ud800", "confidence": 1}', "half a surrogate pair"),
    ],
)
def test_what_cannot_be_read_with_certainty_is_not_json(text: str, said: str) -> None:
    with pytest.raises(NotJSONError, match=said) as caught:
        parse_reply(text, Reflection)
    assert isinstance(caught.value, json.JSONDecodeError)
    assert caught.value.doc == text
    assert caught.value.hint


def test_a_key_said_twice_with_one_value_is_no_contradiction() -> None:
    text = '{"decision": "PROCEED", "decision": "PROCEED", "confidence": 0.9}'
    assert parse_reply(text, Reflection).decision == "PROCEED"


def test_fences_tags_and_line_breaks_inside_a_string_are_text() -> None:
    said = 'Run:\n```json\n{"a": 1}\n```\nnot <think>{"b": 2}</think>'
    assert parse_reply(json.dumps({"response": said}), Draft).response == said
    raw = '{"response": "first line\nsecond line"}'
    assert parse_reply(raw, Draft).response == "first line\nsecond line"


@pytest.mark.parametrize("text", ["", "  \n", "<think>hm</think>", "hm\n</think>\n"])
def test_no_answer_at_all_is_an_empty_reply(text: str) -> None:
    with pytest.raises(EmptyReplyError):
        parse_reply(text, Reflection)


def test_reasoning_without_its_end_is_a_cut_reply() -> None:
    with pytest.raises(CutReplyError, match="in the middle of the model's reasoning"):
        parse_reply(f"<think>Perhaps {OBJECT}", Reflection)


@pytest.mark.parametrize(
    ("text", "kind"),
    [('["PROCEED"]', "an array"), ('"PROCEED"', "a string"), ("7", "a number"),
     (f"```json\n[{OBJECT}]\n```", "an array")],
)  # fmt: skip
def test_json_that_is_no_object_has_the_wrong_shape(text: str, kind: str) -> None:
    with pytest.raises(SchemaMismatchError, match=f"the reply is {kind}"):
        parse_reply(text, Reflection)


def test_a_mismatch_names_each_field_and_what_was_expected() -> None:
    text = '{"decision": "MAYBE", "confidence": 3, "checks": {"claims_supported": []}}'
    with pytest.raises(SchemaMismatchError) as caught:
        parse_reply(text, Verdict)
    said = str(caught.value)
    assert said.startswith("the reply does not fit Verdict: decision: Input should be 'APPROVE'")
    assert "not 'MAYBE'" in said
    assert "confidence: Input should be less than or equal to 1, not 3" in said
    assert "checks.claims_supported.bool: Input should be a valid boolean, not an array" in said
    assert "checks.query_addressed: Field required" in said


def test_a_check_may_say_that_it_was_not_made() -> None:
    text = (
        '{"decision": "APPROVE", "confidence": 1, "checks": {"claims_supported": "not checked",'
        ' "no_hallucinations": true, "query_addressed": true, "coherent_format": true}}'
    )
    verdict = parse_reply(text, Verdict)
    assert verdict.checks.claims_supported == "not checked"
    assert verdict.checks.no_hallucinations is True


def test_a_rule_of_the_whole_object_is_said_in_its_own_words() -> None:
    with pytest.raises(SchemaMismatchError, match="EXECUTE needs at least one tool request"):
        parse_reply('{"decision": "EXECUTE", "route": "coordinator"}', Plan)


def test_a_mismatch_stays_short_however_wrong_the_reply_is() -> None:
    goals = [{"id": "x" * 10_000, "description": ["y" * 10_000]} for _ in range(500)]
    text = json.dumps({"decision": "COMPLETE", "route": "synthesis", "goals": goals})
    with pytest.raises(SchemaMismatchError, match="and 492 more") as caught:
        parse_reply(text, Plan)
    assert len(str(caught.value)) < 1_500


_verdict_text = st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60)


@given(said=_verdict_text, before=st.sampled_from(["", "Well: ", "```json\n"]))
def test_every_answer_comes_back_as_it_was_written(said: str, before: str) -> None:
    after = "\n```" if before.startswith("`") else ""
    for ascii_only in (True, False):
        text = before + json.dumps({"response": said}, ensure_ascii=ascii_only) + after
        assert parse_reply(text, Draft).response == said


@given(end=st.integers(min_value=1, max_value=len(OBJECT) - 1))
def test_no_prefix_of_an_answer_is_an_answer(end: int) -> None:
    with pytest.raises(NotJSONError):
        parse_reply(OBJECT[:end], Reflection)


@given(st.text(max_size=200))
def test_any_text_at_all_is_an_answer_or_a_model_error(text: str) -> None:
    with pytest.raises((EmptyReplyError, CutReplyError, NotJSONError, SchemaMismatchError)):
        parse_reply(text, Reflection)
