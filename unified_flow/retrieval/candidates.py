"""Which chunks are looked at for a question: FTS5 is asked first for those that hold most of it.

FTS5 finds what several lists of chunks share thirty times as fast as its bm25() weighs a chunk of
them. So a question demands a share of its weight, and demands less where the best that are left
out could still be among the best (MaxScore: Turtle and Flood 1995).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from unified_flow.retrieval.bm25 import SAME_HEADING

DEMANDS = (0.8, 0.55, 0.3, 0.1)  # of the question's weight, one after another
_TERMS = 12  # of a long question only the rarest select candidates
_POSTINGS = 150_000  # chunks that these may stand in, counted for each
_DEPTH = 3  # terms that a question to FTS5 tells apart; it doubles with each
_REACHED = 0.8  # of a term's weight: what a chunk gains by it is seldom more

Weights = dict[str, dict[str, float]]
"""Language to the terms of a question in it, each with its inverse document frequency."""


def shares(weights: Weights, wholes: Mapping[str, float] | None = None) -> dict[str, float]:
    """What each term is of the question, in the language where it is most; `wholes`: bm25.score."""
    found: dict[str, float] = {}
    for language, each in weights.items():
        whole = wholes[language] if wholes else sum(each.values())
        for term, weight in each.items():
            found[term] = max(found.get(term, 0.0), weight / max(whole, 1e-9))
    return found


def selecting(terms: Iterable[str], frequencies: Mapping[str, int]) -> list[str]:
    """The rarest of those that any chunk holds, up to a bound on the work, the rarest first. The
    commoner ones still count when the candidates are put in order."""
    known = sorted((frequencies[term], term) for term in set(terms) if frequencies[term])
    work = itertools.accumulate(frequency for frequency, _ in known)
    enough = sum(each <= _POSTINGS for each in work)
    return [term for _, term in known[: max(2, min(enough, _TERMS))]]


def holding(shares: Mapping[str, float], demand: float, depth: int = _DEPTH) -> str:
    """A question to FTS5 for the chunks whose terms come to `demand`, "" if none can.

    `shares` has the greatest first. Beyond the first `depth` of them it asks for too many chunks
    rather than too few: for each that has one of the terms without which the rest is too little.
    """
    if not shares or sum(shares.values()) < demand:
        return ""
    (first, share), *others = shares.items()
    rest = dict(others)
    name, without = quoted(first), holding(rest, demand, depth - 1)
    if depth > 0 and demand > share:
        more = holding(rest, demand - share, depth - 1)
        name = more and f"({name} AND ({more}))"
    return " OR ".join(filter(None, (name, without)))


def most(share: float) -> float:
    """The score of a chunk that holds this share of the question, and has it in its heading."""
    share = min(share * _REACHED, 1.0)
    return share + (1 - share) * SAME_HEADING * max(0.0, 2 * share - 1)


def quoted(term: str) -> str:
    """A term as FTS5 takes it, whatever it holds."""
    return '"' + term.replace('"', '""') + '"'
