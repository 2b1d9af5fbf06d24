"""A run in numbers, and two runs side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from statistics import fmean, median
from typing import Any

from unified_flow.evaluation.answers import MEASURES, Cost, EvaluatedAnswer

RESAMPLES = 4_000
SEED = 1
_Z = 1.959964

Interval = tuple[float, float]


def interval(values: Sequence[float]) -> Interval:
    """Of the mean of `values`, at least one. A share is known by having only 0 and 1 in it."""
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
    paired bootstrap has no zero in it, else `no difference shown`."""
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


def _verdict(better_below: bool, low: float, high: float) -> str:
    if low <= 0 <= high:
        return "no difference shown"
    return "better" if (low > 0) != better_below else "worse"


def _rounded(**values: float) -> dict[str, Any]:
    return {name: round(value, 4) for name, value in values.items()}
