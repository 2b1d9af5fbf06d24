"""What came of one question, as it is kept: raw, so that scores can be read off it anew; a run in
numbers, and two runs side by side.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from unified_flow.turns.results import Citation

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)
RESAMPLES = 4_000
SEED = 1
_Z = 1.959964
Interval = tuple[float, float]


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
    """`of` gives None for an answer that it says nothing of; `better_below` None: neither is
    better, as of times, which a warm cache and other load change."""

    meaning: str
    of: _Value
    better_below: bool | None = False


def _of_answerable(score: Callable[[EvaluatedAnswer], float]) -> _Value:
    return lambda answer: None if answer.unanswerable else score(answer)


def _contained(answer: EvaluatedAnswer) -> float:
    given = answer.status == "answered" and not answer.abstained
    return float(given and contained(answer.response, answer.answers))


def _by_words(score: Callable[[str, list[str]], float]) -> _Value:
    """Scored as in SQuAD 2.0: without an answer abstaining is right and anything else wrong."""

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
    "seconds": Measure("seconds a turn", lambda a: a.duration_ms / 1000, None),
    "model_calls": Measure(
        "model calls a turn", lambda a: float(sum(c.calls for c in a.phases.values())), True
    ),
    "tokens": Measure("tokens a turn", _tokens, True),
}
MEASURES = QUALITY | COST


def interval(values: Sequence[float]) -> Interval:
    """An interval of the mean of `values`, at least one. Only 0 and 1 in it mean a share."""
    if set(values) <= {0.0, 1.0}:
        return _wilson(fmean(values), len(values))
    return bootstrap(values)


def bootstrap(values: Sequence[float]) -> Interval:
    """The percentiles of the mean over resamples (Efron 1979), from a fixed seed. For differences
    of pairs this is the paired bootstrap. Resamples of equal values say nothing: of others there
    may be one in 1 - 0.025^(1/n) (Clopper and Pearson 1934), a unit away."""
    if len(set(values)) == 1:
        half = (1 - 0.025 ** (1 / len(values))) * max(1.0, abs(values[0]))
        return values[0] - half, values[0] + half
    chance = Random(SEED)
    means = sorted(fmean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def _wilson(share: float, count: int) -> Interval:
    spread = _Z * _Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def summary(answers: Iterable[EvaluatedAnswer]) -> dict[str, Any]:
    """JSON-able. `measures` hold {value, low, high, n} (n: the questions that it says something
    of), `phases` what each costs, a turn."""
    found = list(answers)
    measures = {}
    for name, measure in MEASURES.items():
        values = [value for each in found if (value := measure.of(each)) is not None]
        if values:
            low, high = interval(values)
            if name in QUALITY:  # none can be below 0 or above 1
                low, high = max(0.0, low), min(1.0, high)
            measures[name] = _rounded(value=fmean(values), low=low, high=high) | {"n": len(values)}
    return {
        "questions": len(found),
        "unanswerable": sum(each.unanswerable for each in found),
        "measures": measures,
        "median_seconds": round(median(a.duration_ms for a in found) / 1000, 3) if found else None,
        "phases": _phases(found),
        "interventions": sorted(
            {a.trouble.intervention_id for a in found if a.trouble and a.trouble.intervention_id}
        ),
    }


def _phases(answers: list[EvaluatedAnswer]) -> dict[str, dict[str, float]]:
    total: dict[str, Cost] = {}
    for answer in answers:
        for name, cost in answer.phases.items():
            total[name] = total.get(name, Cost()) + cost
    turns = max(1, len(answers))
    return {
        name: _rounded(
            visits=cost.visits / turns,
            seconds=cost.duration_ms / turns / 1000,
            calls=cost.calls / turns,
            prompt_tokens=cost.prompt_tokens / turns,
            completion_tokens=cost.completion_tokens / turns,
        )
        for name, cost in total.items()
    }


def comparison(
    one: Mapping[str, EvaluatedAnswer], other: Mapping[str, EvaluatedAnswer]
) -> dict[str, Any]:
    """B against A, over the questions (by id and text) that both have answered: {a, b, difference,
    low, high, n, verdict} for each measure. `verdict` is `better` or `worse` if the interval of the
    paired bootstrap has no zero in it, else `no difference shown`; `not judged` of times."""
    # Lines of a set without ids are numbered, so an id alone may be another set's question.
    shared = [id for id in one if id in other and one[id].question == other[id].question]
    measures = {}
    for name, measure in MEASURES.items():
        pairs = [
            (a, b)
            for id in shared
            if (a := measure.of(one[id])) is not None and (b := measure.of(other[id])) is not None
        ]
        if not pairs:
            continue
        differences = [b - a for a, b in pairs]
        low, high = bootstrap(differences)
        measures[name] = _rounded(
            a=fmean(a for a, _ in pairs),
            b=fmean(b for _, b in pairs),
            difference=fmean(differences),
            low=low,
            high=high,
        ) | {"n": len(pairs), "verdict": _verdict(measure.better_below, low, high)}
    return {"questions": len(shared), "measures": measures}


def _verdict(better_below: bool | None, low: float, high: float) -> str:
    if better_below is None:
        return "not judged"
    if low <= 0 <= high:
        return "no difference shown"
    return "better" if (low > 0) != better_below else "worse"


def _rounded(**values: float) -> dict[str, Any]:
    return {name: round(value, 4) for name, value in values.items()}
