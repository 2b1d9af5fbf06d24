"""Two rankings into one: reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

K = 60  # the paper's constant: how little the first ranks stand out

Key = TypeVar("Key", bound=Hashable)


def fused(rankings: Sequence[Sequence[Key]]) -> list[tuple[float, Key]]:
    """(score, key), best first. 1.0 is first in all; a key scores for each ranking that has it."""
    best = len(rankings) / (K + 1)
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
    ordered = sorted(scores.items(), key=lambda item: -item[1])
    return [(score / best, key) for key, score in ordered]
