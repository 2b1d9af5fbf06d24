"""Which chunks are looked at for a question: FTS5 is asked first for those that hold most of it.

FTS5 finds the chunks that several terms have in common thirty times as fast as its bm25() weighs as
many. So a question demands a share of its weight, and less where the best of those that are left
out could still be among the best (MaxScore: Turtle and Flood 1995).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

DEMANDS = (0.8, 0.55, 0.3, 0.1)  # of the question's weight, one after another
REACHED = 0.8  # of the share that a chunk holds: its score is seldom more
_TERMS = 32  # of a long question only the rarest select candidates
_POSTINGS = 150_000  # chunks that these may stand in, counted for each
_DEPTH = 3  # terms that a question to FTS5 tells apart: it doubles with each

Weights = dict[str, dict[str, float]]
"""Language to the terms of a question in it, each with its inverse document frequency."""


def shares(
    weights: Weights, wholes: Mapping[str, float] | None, frequency: Callable[[str], int]
) -> dict[str, float]:
    """What each term is of the question in the language where it is most, the greatest first:
    the rarest, up to a bound on the work. The commoner ones count when candidates are put in
    order. `wholes`: bm25.score."""
    found: dict[str, float] = {}
    for language, each in weights.items():
        whole = wholes[language] if wholes else sum(each.values())
        for term, weight in each.items():
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
