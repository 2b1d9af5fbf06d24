"""The answered turns of every session in PostgreSQL, ranked as the file of one machine ranks them:
beside its row a turn has the tokens of what was said, of which a search computes what `bm25()` of
SQLite's FTS5 does (https://sqlite.org/fts5.html, 5.1.1).
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, TypeVar

from unified_flow.lib.text import terms
from unified_flow.shared.database import Connection, Database, at_one_moment
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.sessions.store import Sessions, Statement, unit_score

T = TypeVar("T")
Tokens = list[str]

_K1, _B = 1.2, 0.75
_LEAST_WEIGHT = 1e-6  # of a phrase that stands in half of the texts or more


class SharedSessions(Sessions):
    """While the database is away, callers wait (`Database.run`)."""

    turns, messages = "session_turns", "session_messages"

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = self.place = database.named

    def close(self) -> None:
        """Nothing to close: its connections are the process's."""

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._database.run(lambda connection: _run(connection, query, values)[1])

    def _change(self, work: Callable[[Statement], T]) -> T:
        return self._database.run(
            lambda connection: work(lambda query, *values: _run(connection, query, values)[0])
        )

    def _index(self, run: Statement, turn_id: int, session_id: str, words: str) -> None:
        (tokens,) = _tokens_of([words])
        add = "UPDATE session_turns SET tokens = ?, length = ? WHERE turn_id = ?"
        run(add, tokens, len(tokens), turn_id)

    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        phrases = [phrase for phrase in _tokens_of(list(dict.fromkeys(terms(text)))) if phrase]
        if not phrases:
            return []
        return self._database.run(
            lambda connection: _search(connection, session_id, phrases, before, limit)
        )


def _search(
    connection: Connection, session_id: str, phrases: Sequence[Tokens], before: int, limit: int
) -> list[PriorTurn]:
    """What is asked of all sessions, the statistics, is asked for what was found alone."""
    # With a turn saved meanwhile, more would hold a phrase than there are.
    at_one_moment(connection)
    sql = (
        "SELECT turn_id, question, response, tokens FROM session_turns"
        " WHERE session_id = ? AND turn_id < ? AND tokens && ?"
    )
    some = sorted({token for phrase in phrases for token in phrase})
    _, rows = _run(connection, sql, (session_id, before, some))
    times = [[_times_in(phrase, tokens) for phrase in phrases] for *_, tokens in rows]
    if not any(map(any, times)):
        return []
    sums = "SELECT count(*), sum(length)::float / count(*) FROM session_turns"
    texts, average = connection.execute(sums).fetchone() or (0, 0.0)
    weights = [
        _weight_of(_holding(connection, phrase), texts) if any(found) else 0.0
        for phrase, *found in zip(phrases, *times, strict=True)
    ]
    found = sorted(
        (-_score(len(tokens), average, each, weights), turn_id, question, answer)
        for (turn_id, question, answer, tokens), each in zip(rows, times, strict=True)
        if any(each)
    )
    return [
        PriorTurn(turn_id=turn_id, question=question, answer=answer, score=unit_score(-rank))
        for rank, turn_id, question, answer in found[:limit]
    ]


def _holding(connection: Connection, phrase: Tokens) -> int:
    """How many turns of all sessions hold the phrase."""
    sql = (
        "SELECT count(*) FROM session_turns WHERE tokens @> %s"
        " AND (%s OR strpos(' ' || array_to_string(tokens, ' ') || ' ', %s) > 0)"
    )
    whole = f" {' '.join(phrase)} "
    ((n,),) = connection.execute(sql, [phrase, len(phrase) == 1, whole])
    return int(n)


def _weight_of(held_by: int, texts: int) -> float:
    """The weight of a phrase that `held_by` of all texts hold."""
    inverse = math.log((texts - held_by + 0.5) / (held_by + 0.5))
    return inverse if inverse > 0 else _LEAST_WEIGHT


def _score(length: int, average: float, times: Sequence[int], weights: Sequence[float]) -> float:
    """The score of a text, by its tokens, those of an average one, how often it holds each phrase,
    and what these weigh. Greater is better."""
    norm = _K1 * (1 - _B + _B * length / average)
    return sum(
        weight * each * (_K1 + 1) / (each + norm)
        for each, weight in zip(times, weights, strict=True)
    )


def _tokens_of(texts: Sequence[str]) -> list[Tokens]:
    """The tokens that FTS5 makes of each text; of a term with an underscore there are several,
    which a question has to find side by side."""
    found: list[Tokens] = [[] for _ in texts]
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("CREATE VIRTUAL TABLE texts USING fts5 (text)")
        index.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
        index.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
        for number, token in index.execute("SELECT doc, term FROM tokens ORDER BY doc, offset"):
            found[number].append(token)
    return found


def _times_in(phrase: Tokens, text: Tokens) -> int:
    """How often the phrase stands in the text; phrases may overlap."""
    length = len(phrase)
    starts = range(len(text) - length + 1)
    return sum(text[at] == phrase[0] and text[at : at + length] == phrase for at in starts)


def _run(
    connection: Connection, query: str, values: Sequence[object]
) -> tuple[int, list[tuple[Any, ...]]]:
    """How many rows there are, and what they hold. A text is kept in ASCII, as in JSON: the same
    one comes back, also with a null character, and is found by it."""
    given = [json.dumps(value)[1:-1] if isinstance(value, str) else value for value in values]
    cursor = connection.execute(query.replace("?", "%s").encode(), given)
    if cursor.description is None:
        return cursor.rowcount, []
    rows = [
        tuple(json.loads(f'"{value}"') if isinstance(value, str) else value for value in row)
        for row in cursor
    ]
    return cursor.rowcount, rows
