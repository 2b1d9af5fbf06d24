"""The answered turns of every session in PostgreSQL, ranked as the file of one machine ranks them:
beside its row a turn has the tokens of what was said, of which a search computes what `bm25()` of
SQLite's FTS5 does (https://sqlite.org/fts5.html, 5.1.1; k1 is 1.2, b is 0.75).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, TypeVar

from psycopg import Cursor

from unified_flow.lib.text import terms
from unified_flow.shared.database import Connection, Database
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.sessions.store import Sessions, Statement, unit_score

T = TypeVar("T")
Tokens = list[str]

# A phrase is the tokens of a term, which stand side by side; often it is one. How many turns of all
# sessions hold it is asked for what was found alone. One that half of them hold weighs next to
# nothing.
_SEARCH = """
    WITH phrase AS (
        SELECT number, string_to_array(said, ' ') AS tokens, ' ' || said || ' ' AS said
        FROM unnest(?::text[]) WITH ORDINALITY AS given (said, number)
    ), found AS (
        SELECT turn_id, question, response, length, number, phrase.tokens, said, (
            SELECT count(*)::float FROM unnest(array_positions(turn.tokens, phrase.tokens[1])) AS at
            WHERE turn.tokens[at : at + cardinality(phrase.tokens) - 1] = phrase.tokens
        ) AS times
        FROM session_turns AS turn JOIN phrase ON turn.tokens @> phrase.tokens
        WHERE session_id = ? AND turn_id < ?
    ), known AS (
        SELECT count(*) AS turns, sum(length)::float / count(*) AS average FROM session_turns
    ), weight AS MATERIALIZED (
        SELECT number, greatest(ln((turns - held + 0.5::float) / (held + 0.5::float)), 1e-6) AS idf
        FROM known, phrase, LATERAL (
            SELECT count(*) AS held FROM session_turns AS turn
            WHERE turn.tokens @> phrase.tokens AND (
                cardinality(phrase.tokens) = 1
                OR strpos(' ' || array_to_string(turn.tokens, ' ') || ' ', said) > 0
            )
        ) AS holding
        WHERE number IN (SELECT number FROM found WHERE times > 0)
    )
    SELECT turn_id, question, response, sum(
        idf * (times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / average))) ORDER BY number
    ) AS score
    FROM known, found JOIN weight USING (number) WHERE times > 0
    GROUP BY turn_id, question, response ORDER BY score DESC, turn_id LIMIT ?
"""


class SharedSessions(Sessions):
    """While the database is away, callers wait (`Database.run`)."""

    turns, messages = "session_turns", "session_messages"

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = self.place = database.named

    def close(self) -> None:
        """Nothing to close: its connections are the process's."""

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        rows = self._database.run(lambda connection: _run(connection, query, values).fetchall())
        return [tuple(map(_read, row)) for row in rows]

    def _change(self, work: Callable[[Statement], T]) -> T:
        return self._database.run(
            lambda connection: work(lambda query, *values: _run(connection, query, values).rowcount)
        )

    def _index(self, run: Statement, turn_id: int, session_id: str, words: str) -> None:
        (tokens,) = _tokens_of([words])
        add = "UPDATE session_turns SET tokens = ?, length = ? WHERE turn_id = ?"
        run(add, tokens, len(tokens), turn_id)

    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        tokens = _tokens_of(list(dict.fromkeys(terms(text))))
        phrases = [" ".join(phrase) for phrase in tokens if phrase]
        if not phrases:
            return []
        rows = self._rows(_SEARCH, phrases, session_id, before, limit)
        return [
            PriorTurn(turn_id=turn, question=asked, answer=answer, score=unit_score(score))
            for turn, asked, answer, score in rows
        ]


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


def _run(connection: Connection, query: str, values: Sequence[object]) -> Cursor[Any]:
    """A text is kept in ASCII, as in JSON: the same one comes back (`_read`), also with a null
    character, and is found by it."""
    given = [json.dumps(value)[1:-1] if isinstance(value, str) else value for value in values]
    return connection.execute(query.replace("?", "%s").encode(), given)


def _read(value: object) -> object:
    return json.loads(f'"{value}"') if isinstance(value, str) else value
