"""What came of one question, as it is kept: raw, so that scores can be read off it anew."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from unified_flow.turns.results import Citation


class AnswerRecord(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cost(AnswerRecord):
    """Of one phase in one turn; `calls` are those of language models. A reply from the cache
    counts with the time that it once took."""

    visits: int = 0
    duration_ms: float = 0.0
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Trouble(AnswerRecord):
    """Why a question has no answer, and the intervention that says more."""

    error_type: str
    message: str
    phase: str | None = None
    intervention_id: str | None = None


class EvaluatedAnswer(AnswerRecord):
    """`supported`: for each sentence, whether a cited passage supports it. `retrieved` and
    `gold_cited`: whether a gold answer stands in a passage that was found, and in a cited one."""

    id: str
    question: str
    answers: list[str]
    unanswerable: bool
    status: Literal["answered", "clarify", "failed"]
    response: str = ""
    abstained: bool = False
    citations: list[Citation] = []
    supported: list[bool] = []
    retrieved: bool = False
    gold_cited: bool = False
    trouble: Trouble | None = None
    turn_id: int | None = None
    request_id: str | None = None
    duration_ms: float = 0.0
    phases: dict[str, Cost] = {}


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without punctuation and articles, on one line."""
    bare = "".join(c for c in text.lower() if c not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact(response: str, answers: Sequence[str]) -> float:
    return float(any(normalised(response) == normalised(answer) for answer in answers))


def f1(response: str, answers: Sequence[str]) -> float:
    """The best over the gold answers of the F1 of words in common."""
    return max(
        (_f1(normalised(response).split(), normalised(a).split()) for a in answers), default=0.0
    )


def contained(text: str, answers: Sequence[str]) -> bool:
    """Whether a gold answer stands in the text, as written or as SQuAD normalises both; never as a
    part of a longer word or number."""
    plain = f" {normalised(text)} "
    return any(
        _stands(answer, text) or (bool(own := normalised(answer)) and f" {own} " in plain)
        for answer in answers
        if answer
    )


def _stands(answer: str, text: str) -> bool:
    # Of ASCII alone: scripts without spaces have no gaps between words.
    before, after = r"(?<![A-Za-z0-9])(?<!\d[.,])", r"(?![A-Za-z0-9])(?![.,]\d)"
    return bool(re.search(rf"{before}{re.escape(answer)}{after}", text))


def _f1(said: list[str], gold: list[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    common = sum((Counter(said) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(gold)
    return 2 * precision * recall / (precision + recall)


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
    "citations_support": "sentences that a cited passage supports",
    "gold_in_a_citation": "gold answer in a cited passage, of answers with citations",
    "failed": "failed: interventions wait",
    "asked_back": "a question back",
    "seconds": "seconds a turn",
    "model_calls": "model calls a turn",
    "tokens": "tokens a turn",
}
