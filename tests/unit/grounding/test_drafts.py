"""Sixty faithful answers are accepted with their sources; of sixty spoilt ones, what can be
established is caught, and nothing that is wrong is called supported."""

from __future__ import annotations

import pytest

from tests.unit.grounding.drafts import WrittenDraft, faithful, spoilt
from unified_flow.phases.grounding.citations import REMOVED

ESTABLISHED = ("number", "name", "quotation")


def name(draft: WrittenDraft) -> str:
    return f"{draft.topic}: {draft.kind}: {draft.response[:40]}"


@pytest.mark.parametrize("written", list(faithful()), ids=name)
def test_a_faithful_answer_is_accepted_with_its_sources(written: WrittenDraft) -> None:
    draft, verdict = written.judged()
    assert verdict.decision == "APPROVE", verdict.issues
    assert not draft.abstained
    assert {c.source for c in draft.citations} == {f"docs/p{n}.md:1" for n in written.places}
    assert verdict.checks.claims_supported in (True, "not checked")


@pytest.mark.parametrize("written", list(spoilt()), ids=name)
def test_a_spoilt_answer_is_caught_or_not_checked(written: WrittenDraft) -> None:
    draft, verdict = written.judged()
    if written.kind == "citation":
        assert draft.checklist[REMOVED] is False
        assert "[" not in draft.response
    elif verdict.decision == "REVISE":
        assert verdict.checks.claims_supported is False
    else:
        assert verdict.checks.claims_supported == "not checked"


def test_what_stands_in_no_passage_is_caught() -> None:
    """All but one: the wrong number of workers is the right number of kilobytes."""
    wrong = [written for written in spoilt() if written.kind in ESTABLISHED]
    missed = [each.response for each in wrong if each.judged()[1].decision != "REVISE"]
    assert missed == ["Run it under Gunicorn with 4 workers for each core [5]."]
    assert len(wrong) == 35


def test_there_are_sixty_of_each() -> None:
    assert len(list(faithful())) == len(list(spoilt())) == 60
