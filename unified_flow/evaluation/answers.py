"""What came of one question, as it is kept: raw, so that scores can be read off it anew."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from unified_flow.turns.results import Citation


class AnswerRecord(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cost(AnswerRecord):
    """Of one phase in one turn; `calls` are those of language models."""

    visits: int = 0
    duration_ms: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{name: value + getattr(other, name) for name, value in self})


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


_Value = Callable[[EvaluatedAnswer], float | None]


class Measure(NamedTuple):
    """`of` gives None for an answer that it says nothing of."""

    meaning: str
    of: _Value
    better_below: bool = False


def _of_answerable(score: Callable[[EvaluatedAnswer], float]) -> _Value:
    return lambda answer: None if answer.unanswerable else score(answer)


def _contained(answer: EvaluatedAnswer) -> float:
    given = answer.status == "answered" and not answer.abstained
    return float(given and contained(answer.response, answer.answers))


def _by_words(score: Callable[[str, list[str]], float]) -> _Value:
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
    "right": Measure("answer contained, or abstained where there is none", _right),
    "contained": Measure("gold answer in the response", _of_answerable(_contained)),
    "exact": Measure("SQuAD exact match", _by_words(exact)),
    "f1": Measure("SQuAD F1", _by_words(f1)),
    "abstained": Measure(
        "abstained, of the unanswerable", lambda a: float(a.abstained) if a.unanswerable else None
    ),
    "abstained_falsely": Measure(
        "abstained, of the answerable", _of_answerable(lambda a: float(a.abstained)), True
    ),
    "retrieved": Measure(
        "gold answer in a passage that was found", _of_answerable(lambda a: float(a.retrieved))
    ),
    "citations_support": Measure("sentences that a cited passage supports", _cited_well),
    "gold_in_a_citation": Measure(
        "gold answer in a cited passage, of answers with citations", _gold_cited
    ),
    "failed": Measure("failed: interventions wait", lambda a: float(a.status == "failed"), True),
    "asked_back": Measure("a question back", lambda a: float(a.status == "clarify"), True),
}
COST: dict[str, Measure] = {
    "seconds": Measure("seconds a turn", lambda a: a.duration_ms / 1000, True),
    "model_calls": Measure(
        "model calls a turn", lambda a: float(sum(c.calls for c in a.phases.values())), True
    ),
    "tokens": Measure("tokens a turn", _tokens, True),
}
MEASURES = QUALITY | COST
