"""Whether the passages hold an answer at all: the difference between a quote and a guess."""

from __future__ import annotations

import math
from collections.abc import Mapping

from unified_flow.models.embedded.matching import closest
from unified_flow.models.embedded.question import Question
from unified_flow.models.embedded.ranking import Candidate
from unified_flow.models.embedded.weights import ANSWERABLE, ENOUGH

_KIN_COUNTS = 0.7  # of a match
_SHOWN = ("time", "number")  # kinds of answers that can be told by their form


def signs(question: Question, best: Candidate) -> dict[str, float]:
    """0..1 each.

    `passage`: how much of the question the passage answers by BM25, where a word that no
    document has counts against it (retrieval's score). `nearby`: the question's statements in
    the sentence, its neighbours and its heading. `names`: its names and numbers in the passage.
    `kind`: whether the sentence or a neighbour holds a time or a number where one is asked for.
    """
    read, number = best.read, best.sentence.number
    neighbours = read.sentences[max(0, number - 1) : number + 2]
    near = read.heading.union(*(s.known for s in neighbours))
    whole = read.heading.union(*(s.known for s in read.sentences))
    looked_for = question.lexicon.answers.get(question.kind) if question.kind in _SHOWN else None
    names = question.names & frozenset(question.terms)
    return {
        "passage": read.passage.score,
        "nearby": sum(_found(term, near) for term in question.core) / max(1, len(question.core)),
        "names": sum(_found(term, whole) for term in names) / len(names) if names else 1.0,
        "kind": float(looked_for is None or any(looked_for.search(s.text) for s in neighbours)),
    }


def _found(term: str, known: frozenset[str]) -> float:
    if term in known:
        return 1.0
    return _KIN_COUNTS if closest(term, known) else 0.0


def answerable(
    question: Question, best: Candidate, weights: Mapping[str, float] = ANSWERABLE
) -> float:
    """The probability that the passages hold an answer."""
    found = signs(question, best)
    value = weights["bias"] + sum(weights[name] * found[name] for name in found)
    return 1 / (1 + math.exp(-value))


def is_enough(probability: float) -> bool:
    return probability >= ENOUGH
