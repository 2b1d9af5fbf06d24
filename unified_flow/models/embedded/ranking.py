"""Sentences in the order in which they answer a question, each with its probability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unified_flow.models.embedded.features import Scene, features, scene, surroundings
from unified_flow.models.embedded.passages import Read, Sentence
from unified_flow.models.embedded.question import Question
from unified_flow.models.embedded.weights import SENTENCE


@dataclass(frozen=True, eq=False)
class Candidate:
    """`probability` is that of this sentence to answer, provided that one of them does."""

    read: Read
    sentence: Sentence
    probability: float


def rank(
    question: Question, reads: Sequence[Read], weights: Mapping[str, float] = SENTENCE
) -> list[Candidate]:
    """Best first; a tie keeps the order of the passages."""
    measured = measure(question, reads)
    values = [
        sum(weights[name] * value for name, value in found.items()) for _, _, found in measured
    ]
    top = max(values, default=0.0)
    odds = [math.exp(value - top) for value in values]
    total = sum(odds)
    candidates = [
        Candidate(read, sentence, each / total)
        for (read, sentence, _), each in zip(measured, odds, strict=True)
    ]
    return sorted(candidates, key=lambda candidate: -candidate.probability)


def measure(
    question: Question, reads: Sequence[Read]
) -> list[tuple[Read, Sentence, dict[str, float]]]:
    seen: Scene = scene(question, reads)
    return [
        (read, sentence, features(seen, around, sentence))
        for read in reads
        for around in (surroundings(seen, read),)
        for sentence in read.sentences
        # A lone word of the question ("* Services") names what is asked about and says nothing.
        if len(sentence.known) > 1 or not sentence.known <= seen.asked
    ]
