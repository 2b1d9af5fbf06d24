"""How well a chunk answers a question: BM25 over its text and headings.

FTS5 chooses the candidates by its own bm25(); this puts them in order. It is computed here
because FTS5 gives a term that stands in half of the chunks no weight at all, which in a small
folder is most terms, and because its statistics would be those of every root in the index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

K1 = 1.2
B = 0.75
HEADING_WEIGHT = 2.0
SHORTEST = 0.5  # of the average length


@dataclass(frozen=True)
class Corpus:
    """Statistics of the chunks that a search may return."""

    size: int = 0
    average_length: float = 0.0  # terms of a chunk

    def weight(self, document_frequency: int) -> float:
        """Inverse document frequency, always positive."""
        n = document_frequency
        return math.log(1 + (self.size - n + 0.5) / (n + 0.5))


def score(
    weights: Mapping[str, float],
    heading: Iterable[str],
    body: list[str],
    corpus: Corpus,
    whole: float | None = None,
) -> float:
    """BM25 as a share of what a chunk could reach: 0 if it has no term of the question.

    `weights` holds the question's terms, those that no chunk has among them. Monotone in BM25
    for one question: sum(idf * tf / (tf + norm)) / sum(idf), at most 1; `whole` replaces the
    second sum.
    """
    total = sum(weights.values()) if whole is None else whole
    gained = sum(gains(weights, heading, body, corpus).values())
    return min(1.0, gained / total) if total > 0 else 0.0


def gains(
    weights: Mapping[str, float], heading: Iterable[str], body: list[str], corpus: Corpus
) -> dict[str, float]:
    """What each term of the question that the chunk holds adds: idf * tf / (tf + norm)."""
    found: dict[str, float] = {}
    for term in body:
        if term in weights:
            found[term] = found.get(term, 0.0) + 1.0
    for term in heading:
        if term in weights:
            found[term] = found.get(term, 0.0) + HEADING_WEIGHT
    # Being short speaks for a chunk up to a point: below it there is little to read.
    length = max(len(body) / max(corpus.average_length, 1.0), SHORTEST)
    norm = K1 * (1 - B + B * length)
    return {term: weights[term] * tf / (tf + norm) for term, tf in found.items()}
