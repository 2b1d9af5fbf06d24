"""What is read off one answer: a number, or None where the measure says nothing of it."""

from __future__ import annotations

from collections.abc import Callable

from unified_flow.evaluation.answers import EvaluatedAnswer
from unified_flow.evaluation.scores import contained, exact, f1

Measure = Callable[[EvaluatedAnswer], float | None]


def _of_answerable(score: Callable[[EvaluatedAnswer], float]) -> Measure:
    return lambda answer: None if answer.unanswerable else score(answer)


def _contained(answer: EvaluatedAnswer) -> float:
    given = answer.status == "answered" and not answer.abstained
    return float(given and contained(answer.response, answer.answers))


def _by_words(score: Callable[[str, list[str]], float]) -> Measure:
    """As SQuAD 2.0: where there is no answer, abstaining is right and anything else wrong."""

    def measure(answer: EvaluatedAnswer) -> float:
        if answer.unanswerable:
            return float(answer.abstained)
        return 0.0 if answer.abstained else score(answer.response, answer.answers)

    return measure


def _right(answer: EvaluatedAnswer) -> float:
    return float(answer.abstained) if answer.unanswerable else _contained(answer)


def _cited_well(answer: EvaluatedAnswer) -> float | None:
    if not answer.supported:
        return None
    return sum(answer.supported) / len(answer.supported)


def _gold_cited(answer: EvaluatedAnswer) -> float | None:
    return float(answer.gold_cited) if not answer.unanswerable and answer.citations else None


def _tokens(answer: EvaluatedAnswer) -> float:
    return sum(c.prompt_tokens + c.completion_tokens for c in answer.phases.values())


QUALITY: dict[str, Measure] = {
    "right": _right,
    "contained": _of_answerable(_contained),
    "exact": _by_words(exact),
    "f1": _by_words(f1),
    "abstained": lambda answer: float(answer.abstained) if answer.unanswerable else None,
    "abstained_falsely": _of_answerable(lambda answer: float(answer.abstained)),
    "retrieved": _of_answerable(lambda answer: float(answer.retrieved)),
    "citations_support": _cited_well,
    "gold_in_a_citation": _gold_cited,
    "failed": lambda answer: float(answer.status == "failed"),
    "asked_back": lambda answer: float(answer.status == "clarify"),
}
COST: dict[str, Measure] = {
    "seconds": lambda answer: answer.duration_ms / 1000,
    "model_calls": lambda answer: float(sum(c.calls for c in answer.phases.values())),
    "tokens": _tokens,
}
BETTER_BELOW = frozenset({"abstained_falsely", "failed", "asked_back", *COST})
MEANINGS = {
    "right": "answer contained, or abstained where there is none",
    "contained": "gold answer in the response",
    "exact": "SQuAD exact match",
    "f1": "SQuAD F1",
    "abstained": "abstained, of the unanswerable",
    "abstained_falsely": "abstained, of the answerable",
    "retrieved": "gold answer in a passage that was found",
    "citations_support": "citations that support their sentence",
    "gold_in_a_citation": "gold answer in a quote, of answers with citations",
    "failed": "failed: interventions wait",
    "asked_back": "a question back",
    "seconds": "seconds a turn",
    "model_calls": "model calls a turn",
    "tokens": "tokens a turn",
}
