from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.grounding.test_citations import (
    APPROVED,
    BRIDGE,
    KIOSK,
    LEAVES,
    QUESTION,
    answer,
    passage,
    searched,
)
from unified_flow.phases.grounding.evidence import evidence_of, is_hopeless, is_refusal, is_sure
from unified_flow.phases.grounding.verdict_check import weighed
from unified_flow.turns.results import GatheredContext, Memory, ToolResult
from unified_flow.turns.sections import Sections


def test_the_sentence_that_states_it_comes_first() -> None:
    found = evidence_of(QUESTION, searched())
    assert found is not None
    assert (found.sentences[0].quote, found.sentences[0].source) == (LEAVES, "docs/ferry.md:3")
    assert is_sure(found)


def test_where_nothing_was_found_nothing_is_stated() -> None:
    result = ToolResult(tool="doc.search", success=True, result={"query": "", "passages": []})
    found = evidence_of(QUESTION, Sections(coordinator=(result,)))
    assert found is not None
    assert (found.sentences, is_sure(found)) == ([], False)
    assert is_hopeless(found, small=False)


def test_rules_do_not_judge_passages_that_may_state_it_in_other_words() -> None:
    far = {**passage(BRIDGE, "docs/bridge.md"), "score": 0.02}
    result = ToolResult(tool="doc.search", success=True, result={"query": "", "passages": [far]})
    sections = Sections(coordinator=(result,))
    found = evidence_of("Who painted the chapel's ceiling?", sections)
    assert found is not None
    assert not found.sentences
    assert is_hopeless(found, small=True)
    assert not is_hopeless(found, small=False)
    german = evidence_of("Wer hat die Decke der Kapelle bemalt?", sections)
    assert german is None


@pytest.mark.parametrize(
    "question",
    [
        "Why does the ferry to the island leave?",
        "How does the ferry to the island leave?",
        "Summarise what is said of the ferry to the island.",
    ],
)
def test_some_questions_want_more_than_a_fact(question: str) -> None:
    found = evidence_of(question, searched())
    assert found is not None
    assert not found.one_fact


def test_rules_do_not_judge_what_was_not_searched() -> None:
    calculated = ToolResult(tool="calculate", success=True, result={"value": 6})
    known = GatheredContext(memories=[Memory(id="m1", text="The ferry leaves at ten on Sundays.")])
    for sections in (
        Sections(),
        replace(searched(), coordinator=(*searched().coordinator, calculated)),
        replace(searched(), context_gatherer=known),
    ):
        assert evidence_of(QUESTION, sections) is None


def test_an_answer_from_a_sentence_that_says_something_else_is_sent_back_once() -> None:
    draft = answer(KIOSK)
    sections = searched(draft)
    found = evidence_of(QUESTION, sections)
    first = weighed(APPROVED, QUESTION, sections, found)
    assert first.decision == "REVISE"
    assert first.issues == [f"does not rest on “{LEAVES}”"]
    assert first.hints[-1] == f"answer in the words of “{LEAVES}”"
    again = weighed(APPROVED, QUESTION, replace(sections, validation=first), found)
    assert again.decision == "APPROVE"
    assert weighed(APPROVED, QUESTION, sections).decision == "APPROVE"
    right = searched(answer(LEAVES))
    assert weighed(APPROVED, QUESTION, right, found).decision == "APPROVE"


@pytest.mark.parametrize(
    ("response", "refuses"),
    [
        ("The documents do not say.", True),
        ("The documents do not mention who painted the chapel's ceiling.", True),
        ("The sources do not provide direct information on how regimes fight.", True),
        ("The answer is not stated in the given documents.", True),
        ("The document does not state the answer.", True),
        ("Dokumenten har inget svar på detta.", True),
        ("404 means that the page was not found.", False),
        ("The text does not contain HTML.", False),
        ("A password is not given by default.", False),
        ("Dokumentet får inte delas.", False),
    ],
)
def test_a_refusal_is_told_from_an_answer_with_a_not_in_it(response: str, refuses: bool) -> None:
    assert is_refusal(response) is refuses
