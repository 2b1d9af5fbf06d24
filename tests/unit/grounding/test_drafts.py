"""Sixty faithful answers are accepted with their sources; of sixty spoilt ones, what can be
established is caught, and nothing that is wrong is called supported."""

from __future__ import annotations

from tests.unit.grounding.drafts import faithful, spoilt
from unified_flow.phases.grounding.citations import REMOVED

ESTABLISHED = ("number", "name", "quotation")


def test_a_faithful_answer_is_accepted_with_its_sources() -> None:
    for written in faithful():
        draft, verdict = written.judged()
        sources = {citation.source for citation in draft.citations}
        assert verdict.decision == "APPROVE", (written, verdict.issues)
        assert not draft.abstained, written
        assert sources == {f"docs/p{n}.md:1" for n in written.places}, written
        assert verdict.checks.claims_supported in (True, "not checked"), written


def test_a_spoilt_answer_is_caught_or_not_checked() -> None:
    for written in spoilt():
        draft, verdict = written.judged()
        if written.kind == "citation":
            assert draft.checklist[REMOVED] is False, written
            assert "[" not in draft.response, written
        elif verdict.decision == "REVISE":
            assert verdict.checks.claims_supported is False, written
        else:
            assert verdict.checks.claims_supported == "not checked", written


def test_what_stands_in_no_passage_is_caught() -> None:
    """All but one: the wrong number of workers is the right number of kilobytes."""
    wrong = [written for written in spoilt() if written.kind in ESTABLISHED]
    missed = [each.response for each in wrong if each.judged()[1].decision != "REVISE"]
    assert missed == ["Run it under Gunicorn with 4 workers for each core [5]."]
    assert len(wrong) == 35


def test_there_are_sixty_of_each() -> None:
    assert len(list(faithful())) == len(list(spoilt())) == 60
