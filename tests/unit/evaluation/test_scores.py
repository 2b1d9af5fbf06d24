"""Exact match, F1 and containment, as the evaluation script of SQuAD has them."""

from __future__ import annotations

import pytest

from unified_flow.evaluation.answers import contained, exact, f1, normalised


def test_normalising_drops_case_punctuation_articles_and_space() -> None:
    assert normalised("The  Denver Broncos, a team!") == "denver broncos team"


@pytest.mark.parametrize(
    ("response", "answers", "is_exact", "score"),
    [
        ("the Denver Broncos.", ["Denver Broncos"], 1.0, 1.0),
        ("Broncos", ["Denver Broncos", "Broncos"], 1.0, 1.0),
        ("Denver Broncos won", ["Denver Broncos"], 0.0, 0.8),
        ("Carolina", ["Denver Broncos"], 0.0, 0.0),
        ("", ["Denver Broncos"], 0.0, 0.0),
        ("the", ["a"], 1.0, 1.0),
    ],
)
def test_exact_and_f1(response: str, answers: list[str], is_exact: float, score: float) -> None:
    assert exact(response, answers) == is_exact
    assert f1(response, answers) == pytest.approx(score)


@pytest.mark.parametrize(
    ("response", "answer", "there"),
    [
        ("It was the Denver Broncos who won.", "Denver Broncos", True),
        ("It was in the mid-1970s.", "mid-1970s", True),
        ("about 3500 cars", "3,500 cars", True),
        ("It was 1971.", "197", False),
        ("It was nineteen.", "nine teen", False),
        ("它建于1871年。", "1871年", True),
        ("Anything", "", False),
    ],
)
def test_containment(response: str, answer: str, there: bool) -> None:
    assert contained(response, [answer]) is there
