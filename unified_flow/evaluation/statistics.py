"""Intervals of 95 %: Wilson's for shares, the bootstrap's for other means and for differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from statistics import fmean

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
    of pairs this is the paired bootstrap."""
    chance = Random(SEED)
    means = sorted(fmean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def _wilson(share: float, count: int) -> Interval:
    spread = _Z * _Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
