"""SQLite's own ranking of full text (FTS5, `bm25()`), for texts that lie elsewhere: a conversation
has the same scores in PostgreSQL as in the file of one machine.

Source: https://sqlite.org/fts5.html, 5.1.1.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing

K1, B = 1.2, 0.75
_LEAST_WEIGHT = 1e-6  # of a phrase that stands in half of the texts or more

Tokens = Sequence[str]


def tokens_of(texts: Sequence[str]) -> list[list[str]]:
    """The tokens that FTS5 makes of each text; of a term with an underscore there are several,
    which a question has to find side by side."""
    found: list[list[str]] = [[] for _ in texts]
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("CREATE VIRTUAL TABLE texts USING fts5 (text)")
        index.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
        index.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
        for number, token in index.execute("SELECT doc, term FROM tokens ORDER BY doc, offset"):
            found[number].append(token)
    return found


def times_in(phrase: Tokens, text: Tokens) -> int:
    """How often the phrase stands in the text; phrases may overlap."""
    wanted, length = list(phrase), len(phrase)
    starts = range(len(text) - length + 1)
    return sum(text[at] == wanted[0] and list(text[at : at + length]) == wanted for at in starts)


def weight_of(held_by: int, texts: int) -> float:
    """The weight of a phrase that `held_by` of all texts hold."""
    inverse = math.log((texts - held_by + 0.5) / (held_by + 0.5))
    return inverse if inverse > 0 else _LEAST_WEIGHT


def score(length: int, average: float, times: Sequence[int], weights: Sequence[float]) -> float:
    """The score of a text, by its tokens, those of an average one, how often it holds each phrase,
    and what these weigh. 0 and up, greater is better."""
    norm = K1 * (1 - B + B * length / average)
    return sum(
        weight * each * (K1 + 1) / (each + norm)
        for each, weight in zip(times, weights, strict=True)
    )
