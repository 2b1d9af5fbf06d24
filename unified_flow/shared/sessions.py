"""The answered turns of every session in PostgreSQL, ranked as the file of one machine ranks them.

A turn is a row of JSON, with the tokens of what was said; a message is one, too, under the id by
which it is kept once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interventions.times import to_text
from unified_flow.errors import RetrievalError
from unified_flow.lib.text import terms
from unified_flow.shared.database import Connection, Database
from unified_flow.shared.fts5_ranking import Texts, Tokens, times_in, tokens_of
from unified_flow.shared.stored_text import encoded, storable
from unified_flow.turns.results import PriorTurn, Saved
from unified_flow.turns.sessions.store import (
    CITATIONS,
    Exchange,
    Sessions,
    SessionSummary,
    index_text,
    unit_score,
)
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.message import assistant_message, message_id, user_message

# One that another turn has stays with it.
ADD_MESSAGE = """
INSERT INTO session_messages AS known (id, session_id, turn_id, message) VALUES (%s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET message = EXCLUDED.message WHERE known.turn_id = EXCLUDED.turn_id
RETURNING id
"""
ADD_TURN = """
INSERT INTO session_turns (turn_id, session_id, user_id, started_at, record, tokens, length)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (turn_id) DO UPDATE SET session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
    started_at = EXCLUDED.started_at, record = EXCLUDED.record, tokens = EXCLUDED.tokens,
    length = EXCLUDED.length
"""
_SESSIONS = """
SELECT g.session_id, g.turns, g.first_at, g.last_at, opening.record
FROM (
    SELECT session_id, count(*) AS turns, min(started_at) AS first_at, max(started_at) AS last_at,
        min(turn_id) AS first, max(turn_id) AS last
    FROM session_turns GROUP BY session_id
) AS g
JOIN session_turns AS opening ON opening.turn_id = g.first ORDER BY g.last DESC LIMIT %s
"""


class SharedSessions(Sessions):
    """While the database is away, callers wait (`Database.run`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def place(self) -> str:
        return self._database.named

    def close(self) -> None:
        """Its connections are the process's."""

    def last_turn_id(self) -> int:
        """0: PostgreSQL gives no number twice."""
        return 0

    def answered(self, session_id: str, request_id: str, user_id: str, question: str) -> int | None:
        message = message_id(session_id, request_id, user_id, question, "user")
        sql = "SELECT turn_id FROM session_messages WHERE id = %s"
        try:
            return next((turn for (turn,) in self._rows(sql, str(message))), None)
        except RetrievalError:
            return None

    def save(self, turn: Turn) -> Saved:
        if not turn.persist:
            return Saved()
        messages = (user_message(turn), assistant_message(turn))
        (tokens,) = tokens_of([index_text(turn)])
        saved = Saved(message_ids=[str(each.id) for each in messages], store=self.place)
        owner = (storable(turn.session_id), turn.turn_id)

        def add(connection: Connection) -> Saved:
            for message in messages:
                row = (str(message.id), *owner, encoded(message.model_dump(mode="json")))
                if connection.execute(ADD_MESSAGE, row).fetchone() is None:
                    return saved  # the turn that was saved first is kept
            # A resumed turn may have been asked in other words before.
            connection.execute(
                "DELETE FROM session_messages"
                " WHERE session_id = %s AND turn_id = %s AND id <> ALL (%s)",
                (*owner, saved.message_ids),
            )
            connection.execute(ADD_TURN, _row(turn, tokens))
            return saved

        return self._database.run(add)

    def take_back(self, turn: Turn) -> int:
        def remove(connection: Connection) -> int:
            gone = connection.execute(
                "DELETE FROM session_messages WHERE session_id = %s AND turn_id = %s",
                (storable(turn.session_id), turn.turn_id),
            )
            if gone.rowcount:
                connection.execute("DELETE FROM session_turns WHERE turn_id = %s", [turn.turn_id])
            return gone.rowcount

        return self._database.run(remove)

    def user_of(self, session_id: str) -> str | None:
        sql = (
            "SELECT user_id FROM session_turns WHERE session_id = %s ORDER BY turn_id DESC LIMIT 1"
        )
        return next((user for (user,) in self._rows(sql, storable(session_id))), None)

    def recent(self, session_id: str, *, before: int, limit: int) -> list[PriorTurn]:
        sql = (
            "SELECT turn_id, record FROM session_turns WHERE session_id = %s AND turn_id < %s"
            " ORDER BY turn_id DESC LIMIT %s"
        )
        rows = self._rows(sql, storable(session_id), before, limit)
        return [_prior(turn_id, record) for turn_id, record in reversed(rows)]

    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        phrases = [phrase for phrase in tokens_of(list(dict.fromkeys(terms(text)))) if phrase]
        if not phrases:
            return []
        return self._database.run(
            lambda connection: _search(connection, session_id, phrases, before, limit)
        )

    def sessions(self, limit: int) -> list[SessionSummary]:
        return [
            SessionSummary(session_id, turns, first_at, last_at, json.loads(record)["question"])
            for session_id, turns, first_at, last_at, record in self._rows(_SESSIONS, limit)
        ]

    def exchanges(self, session_id: str) -> list[Exchange]:
        sql = (
            "SELECT turn_id, started_at, record FROM session_turns"
            " WHERE session_id = %s ORDER BY turn_id"
        )
        found = []
        for turn_id, at, text in self._rows(sql, storable(session_id)):
            record = json.loads(text)
            cited = CITATIONS.validate_python(record["citations"])
            said = (record["question"], record["response"], cited, record["abstained"])
            found.append(Exchange(turn_id, at, *said))
        return found

    def forget(self, session_id: str) -> int:
        def remove(connection: Connection) -> int:
            for table in ("session_messages", "session_turns"):
                sql = f"DELETE FROM {table} WHERE session_id = %s"
                gone = connection.execute(sql.encode(), [storable(session_id)])
            return gone.rowcount

        return self._database.run(remove)

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._database.run(lambda c: c.execute(sql.encode(), values).fetchall())


def _search(
    connection: Connection, session_id: str, phrases: Sequence[Tokens], before: int, limit: int
) -> list[PriorTurn]:
    """What is asked of all sessions, the statistics, is asked for what was found alone."""
    sql = (
        "SELECT turn_id, record, tokens FROM session_turns"
        " WHERE session_id = %s AND turn_id < %s AND tokens && %s"
    )
    some = sorted({token for phrase in phrases for token in phrase})
    rows = connection.execute(sql, [storable(session_id), before, some]).fetchall()
    times = [[times_in(phrase, tokens) for phrase in phrases] for *_, tokens in rows]
    held = [any(row) for row in zip(*times, strict=True)]
    if not any(held):
        return []
    sums = "SELECT count(*), sum(length) FROM session_turns"
    texts = Texts(*connection.execute(sums).fetchone() or (0, 0))
    weights = [
        texts.weight(_holding(connection, phrase)) if is_held else 0.0
        for phrase, is_held in zip(phrases, held, strict=True)
    ]
    found = []
    for (turn_id, record, tokens), row in zip(rows, times, strict=True):
        score = texts.score(len(tokens), list(zip(row, weights, strict=True)))
        if any(row):
            found.append((-score, turn_id, record))
    found.sort()
    return [_prior(turn_id, record, unit_score(-rank)) for rank, turn_id, record in found[:limit]]


def _holding(connection: Connection, phrase: Tokens) -> int:
    """How many turns of all sessions hold the phrase."""
    sql = (
        "SELECT count(*) FROM session_turns WHERE tokens @> %s"
        " AND (%s OR strpos(' ' || array_to_string(tokens, ' ') || ' ', %s) > 0)"
    )
    whole = f" {' '.join(phrase)} "
    ((count,),) = connection.execute(sql, [list(phrase), len(phrase) == 1, whole])
    return int(count)


def turn_row(
    turn_id: int, names: Sequence[str], at: str, record: Mapping[str, Any], tokens: Tokens
) -> tuple[object, ...]:
    """The values of ADD_TURN; `names` are the session and the user, `tokens` are of what the turn
    is found by (`index_text`)."""
    return (turn_id, *map(storable, names), at, encoded(record), list(tokens), len(tokens))


def _row(turn: Turn, tokens: Tokens) -> tuple[object, ...]:
    draft, analysis = turn.sections.synthesis, turn.sections.query_analyzer
    assert draft is not None
    assert analysis is not None
    assert turn.started_at is not None
    record = {
        "request_id": turn.request_id,
        "question": turn.question,
        "resolved_query": analysis.resolved_query,
        "response": draft.response,
        "citations": [citation.model_dump(mode="json") for citation in draft.citations],
        "abstained": draft.abstained,
    }
    names = (turn.session_id, turn.user_id)
    return turn_row(turn.turn_id, names, to_text(turn.started_at), record, tokens)


def _prior(turn_id: int, text: str, score: float = 1.0) -> PriorTurn:
    record = json.loads(text)
    question, answer = record["question"], record["response"]
    return PriorTurn(turn_id=turn_id, question=question, answer=answer, score=score)
