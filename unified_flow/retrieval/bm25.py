"""How well a chunk answers a question: BM25 over its text and headings.

FTS5 chooses the candidates by its own bm25(); this puts them in order. It is computed here
because FTS5 gives a term that stands in half of the chunks no weight at all, which in a small
folder is most terms, and because its statistics would be those of every root in the index.

FTS5 finds the chunks that several terms have in common thirty times as fast as its bm25() weighs as
many. So it is asked first for those that hold a share of the question's weight (`holding`), and for
less where the best of those that are left out could still be among the best (MaxScore: Turtle and
Flood 1995).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

K1 = 1.2
B = 0.75
HEADING_WEIGHT = 2  # of a term in the chunk's own heading; in its text 1
TRAIL_WEIGHT = 1  # in a heading above, or in the file's name
SHORTEST = 0.2  # of the average length: below that being short speaks for a chunk no more
SAME_HEADING = 0.9  # of what is left to 1: what a heading adds that says just what is asked
OTHER_VERSION = 0.4  # of the score: what it costs to be about a version that is not asked for
FEWEST_VERSIONS = 3  # in the headings of documents that tell versions apart
DEMANDS = (0.8, 0.55, 0.3, 0.1)  # of the question's weight, one after another
REACHED = 0.8  # of the share that a chunk holds: its score is seldom more
_TERMS = 32  # of a long question only the rarest select candidates
_POSTINGS = 150_000  # chunks that these may stand in, counted for each
_DEPTH = 3  # terms that a question to FTS5 tells apart: it doubles with each


class WeighedTerms(NamedTuple):
    """The terms of a question in one language, each with its inverse document frequency; and what a
    chunk that holds all that is asked can reach."""

    weights: Mapping[str, float]
    whole: float


Question = dict[str, WeighedTerms]
"""By language."""


@dataclass(frozen=True)
class Corpus:
    """Statistics of the chunks that a search may return."""

    size: int = 0
    average_length: float = 0.0  # terms of a chunk
    versions: int = 0  # that headings name

    def weight(self, document_frequency: int) -> float:
        """Inverse document frequency, always positive."""
        n = document_frequency
        return math.log(1 + (self.size - n + 0.5) / (n + 0.5))


class CandidateChunk(NamedTuple):
    """The terms of a chunk, separated by spaces: of its own heading, of the headings above
    with the file's name, and of its text; and the version that it is about, or ""."""

    id: int
    language: str
    heading: str
    trail: str
    body: str
    version: str


class Score(NamedTuple):
    """A score from 0 to 1: what each term of the question adds, and a heading that says what is
    asked; what being about another version takes away."""

    terms: dict[str, float]
    heading: float = 0.0
    version: float = 0.0

    @property
    def value(self) -> float:
        return min(1.0, sum(self.terms.values()) + self.heading - self.version)


def score(
    question: Question, chunk: CandidateChunk, corpus: Corpus, weight_of: Callable[[str], float]
) -> Score:
    """BM25 as a share of what a chunk could reach, raised by a heading that says what is asked.

    `question` holds terms that no chunk has, too; `weight_of` gives any other term's weight. The
    share is monotone in BM25 for one question: sum(idf * tf / (tf + norm)) / whole.
    """
    weights, whole = question[chunk.language]
    gained = _gains(weights, chunk, corpus) if whole > 0 else {}
    if not gained:
        return Score({})
    terms = {term: gain / whole for term, gain in gained.items()}
    share = min(1.0, sum(terms.values()))
    heading = (1 - share) * SAME_HEADING * _likeness(weights, chunk.heading, weight_of)
    other = chunk.version and chunk.version not in weights and corpus.versions >= FEWEST_VERSIONS
    return Score(terms, heading, OTHER_VERSION * (share + heading) if other else 0.0)


def _gains(weights: Mapping[str, float], chunk: CandidateChunk, corpus: Corpus) -> dict[str, float]:
    """What each term of the question that the chunk holds adds: idf * tf / (tf + norm)."""
    body = chunk.body.split()
    length = max(len(body) / max(corpus.average_length, 1.0), SHORTEST)
    norm = K1 * (1 - B + B * length)
    found = Counter(filter(weights.__contains__, body))
    heading = set(chunk.heading.split())
    for term in heading.union(chunk.trail.split()):
        if term in weights:
            found[term] += HEADING_WEIGHT if term in heading else TRAIL_WEIGHT
    return {term: weights[term] * tf / (tf + norm) for term, tf in found.items()}


def _likeness(
    weights: Mapping[str, float], heading: str, weight_of: Callable[[str], float]
) -> float:
    """How nearly a heading says what is asked: 1 if it has the same terms, 0 if those that both
    have weigh no more than half of those that either has."""
    own = set(heading.split())
    total = sum(weights.values())
    shared = sum(weight for term, weight in weights.items() if term in own)
    if 2 * shared <= total:
        return 0.0
    either = total + sum(weight_of(term) for term in own if term not in weights)
    return max(0.0, 2 * shared / either - 1)


def shares(question: Question, frequency: Callable[[str], int]) -> dict[str, float]:
    """What each term is of the question in the language where it is most, the greatest first:
    the rarest, up to a bound on the work. The commoner ones count when candidates are put in
    order."""
    found: dict[str, float] = {}
    for weights, whole in question.values():
        for term, weight in weights.items():
            found[term] = max(found.get(term, 0.0), weight / whole)
    known = sorted((frequency(term), term) for term in found if frequency(term))
    work = itertools.accumulate(count for count, _ in known)
    enough = max(2, min(sum(each <= _POSTINGS for each in work), _TERMS))
    chosen = [term for _, term in known[:enough]]
    return {term: found[term] for term in sorted(chosen, key=lambda each: -found[each])}


def holding(shares: Mapping[str, float], demand: float, depth: int = _DEPTH) -> str:
    """A question to FTS5 for the chunks whose terms come to `demand`, "" if none can.

    Beyond the first `depth` terms it asks for too many chunks rather than too few: for each that
    has one of the terms without which the rest is too little.
    """
    if not shares or sum(shares.values()) < demand:
        return ""
    (first, share), *others = shares.items()
    name, rest = quoted(first), dict(others)
    without = holding(rest, demand, depth - 1)
    if depth > 0 and demand > share:
        more = holding(rest, demand - share, depth - 1)
        name = more and f"({name} AND ({more}))"
    return " OR ".join(filter(None, (name, without)))


def quoted(term: str) -> str:
    """A term as FTS5 takes it, whatever it holds."""
    return '"' + term.replace('"', '""') + '"'
