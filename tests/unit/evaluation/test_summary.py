"""What a run is worth in numbers, and when one run counts as better than another."""

from __future__ import annotations

from typing import Any

import pytest

from unified_flow.evaluation.answers import (
    Cost,
    EvaluatedAnswer,
    bootstrap,
    comparison,
    interval,
    summary,
)
from unified_flow.turns.results import Citation

CITATION = Citation(source="a.md:1", quote="in Oslo")


def answer(id: int, response: str = "In Oslo.", **over: Any) -> EvaluatedAnswer:
    told = {
        "id": str(id), "question": "Where?", "answers": ["Oslo"], "unanswerable": False,
        "status": "answered", "response": response, "duration_ms": 2000.0,
        "phases": {"synthesis": Cost(visits=1, calls=2, prompt_tokens=90, completion_tokens=10)},
    }  # fmt: skip
    return EvaluatedAnswer.model_validate(told | over)


ABSENT: dict[str, Any] = {"unanswerable": True, "answers": []}


def value(answers: list[EvaluatedAnswer], measure: str) -> float:
    found: float = summary(answers)["measures"][measure]["value"]
    return found


def test_what_is_right() -> None:
    abstained: dict[str, Any] = {"abstained": True, "response": "The documents do not say."}
    found = [
        answer(1),
        answer(2, "In Bergen."),
        answer(3, **abstained),
        answer(4, **abstained, **ABSENT),
        answer(5, **ABSENT),
        answer(6, "", status="failed"),
        answer(7, "Which town?", status="clarify"),
    ]
    assert value(found, "right") == pytest.approx(2 / 7, abs=1e-4)
    assert value(found, "contained") == pytest.approx(1 / 5)
    assert value(found, "abstained") == 0.5
    assert value(found, "abstained_falsely") == pytest.approx(1 / 5)
    assert value(found, "failed") == value(found, "asked_back") == pytest.approx(1 / 7, abs=1e-4)


def test_an_abstention_that_names_the_answer_does_not_contain_it() -> None:
    assert value([answer(1, "Nothing says Oslo.", abstained=True)], "contained") == 0


def test_citations_count_where_there_are_some() -> None:
    cited: dict[str, Any] = {
        "citations": [CITATION, CITATION],
        "supported": [True, False],
        "gold_cited": True,
    }
    found = summary([answer(1, **cited), answer(2)])["measures"]
    assert (found["citations_support"]["value"], found["citations_support"]["n"]) == (0.5, 1)
    assert found["gold_in_a_citation"]["value"] == 1.0


def test_no_interval_of_a_share_goes_beyond_0_or_1() -> None:
    measures = summary([answer(1, "In Oslo, they say.")])["measures"]
    assert 0 < measures["f1"]["value"] < 1
    assert (measures["f1"]["low"], measures["f1"]["high"]) == (0.0, 1.0)


def test_what_a_turn_costs() -> None:
    found = summary([answer(1), answer(2, duration_ms=4000.0)])
    assert found["measures"]["seconds"]["value"] == 3.0
    assert found["measures"]["tokens"]["value"] == 100.0
    assert found["phases"]["synthesis"]["calls"] == 2.0


def test_intervals_hold_the_mean_and_narrow() -> None:
    few, many = interval([1.0] * 8 + [0.0] * 2), interval([1.0] * 80 + [0.0] * 20)
    assert few[0] < many[0] < 0.8 < many[1] < few[1]
    assert interval([1.0] * 10)[1] == pytest.approx(1.0)
    assert interval([1.0] * 10)[0] == pytest.approx(0.722, abs=0.001)  # Wilson's
    low, high = bootstrap([0.5] * 10)
    assert low < 0.5 < high


def test_the_bootstrap_holds_95_in_100_of_the_means_of_resamples() -> None:
    # The mean of 100 draws of 0 or 1 is binomial: 95 % of it lies between 0.40 and 0.60.
    low, high = bootstrap([0.0, 1.0] * 50)
    assert (low, high) == (pytest.approx(0.40, abs=0.011), pytest.approx(0.60, abs=0.011))


def test_equal_values_have_an_interval_that_narrows_with_their_number() -> None:
    low, high = bootstrap([0.0] * 5)
    assert (low, high) == (pytest.approx(-0.522, abs=1e-3), pytest.approx(0.522, abs=1e-3))
    assert bootstrap([1.0] * 100)[0] == pytest.approx(1 - 0.0362, abs=1e-3)


def test_a_difference_counts_only_if_its_interval_leaves_zero_out() -> None:
    worse = {str(n): answer(n, "In Bergen." if n < 15 else "In Oslo.") for n in range(40)}
    same = {str(n): answer(n, "In Bergen." if n == 1 else "In Oslo.") for n in range(40)}
    good = {str(n): answer(n) for n in range(45)}
    found = comparison(worse, good)
    assert found["questions"] == 40
    assert found["measures"]["right"]["verdict"] == "better"
    assert found["measures"]["right"]["difference"] == pytest.approx(15 / 40)
    assert comparison(good, worse)["measures"]["right"]["verdict"] == "worse"
    assert comparison(same, good)["measures"]["right"]["verdict"] == "no difference shown"


def test_fewer_failures_are_better_and_times_are_not_judged() -> None:
    slow = {str(n): answer(n, "", status="failed", duration_ms=9000.0) for n in range(30)}
    quick = {str(n): answer(n) for n in range(30)}
    found = comparison(slow, quick)["measures"]
    assert found["failed"]["verdict"] == "better"
    assert found["seconds"]["verdict"] == "not judged"  # a warm cache would be


def test_questions_of_two_sets_are_not_held_against_each_other_by_their_numbers() -> None:
    mine = {str(n): answer(n) for n in range(3)}
    other = {str(n): answer(n, question="When?" if n else "Where?") for n in range(3)}
    assert comparison(mine, other)["questions"] == 1
