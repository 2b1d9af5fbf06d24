"""What phase 7 keeps and phases 0 and 2 read: finished turns, their messages, and an index.

One transaction a turn. A message has an id, by which it is added once and removed: the same for the
same turn saved again, and for the same message delivered again (one request id).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter

from interventions.times import to_text
from unified_flow.errors import RetrievalError
from unified_flow.lib.text import terms
from unified_flow.turns.results import Citation, PriorTurn, Saved
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.message import Message, assistant_message, message_id, user_message

T = TypeVar("T")

CITATIONS = TypeAdapter(list[Citation])
_TURN = (
    "turn_id, session_id, request_id, user_id, question, resolved_query, response, citations,"
    " abstained, started_at"
)


@dataclass(frozen=True)
class SessionSummary:
    """Times are ISO 8601 in UTC; `opening` is the first question that was answered."""

    session_id: str
    turns: int
    first_at: str
    last_at: str
    opening: str


@dataclass(frozen=True)
class Exchange:
    """One answered turn of a session."""

    turn_id: int
    at: str
    question: str
    response: str
    citations: list[Citation]
    abstained: bool


class Sessions(ABC):
    """What a turn keeps for the turns after it, and asks of those before; a caller on an event loop
    takes a thread. Each method raises RetrievalError if the store cannot be used, but for
    `answered` and `last_turn_id`.

    In two tables of a database, which the class names; what a turn is found by is each database's
    own. Statements have `?` for a value."""

    turns, messages = "turns", "messages"
    name: str  # in what is told of a saved turn
    place: str

    @abstractmethod
    def close(self) -> None: ...

    def last_turn_id(self) -> int:
        """The greatest turn that was saved, if its number could be given to another one; else 0,
        also if the store cannot tell."""
        return 0

    @abstractmethod
    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        """Turns of the session that bear on `text`, best first; scores by BM25, mapped to 0..1."""

    @abstractmethod
    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def _change(self, work: Callable[[Statement], T]) -> T:
        """What `work` returns, in a transaction, perhaps more than once."""

    @abstractmethod
    def _index(self, run: Statement, turn_id: int, session_id: str, words: str) -> None:
        """What a turn, whose row was written just now, is found by."""

    def _forget_index(self, run: Statement, column: str, value: object) -> None:
        """Remove from the index the turns with this value in `turn_id` or `session_id`."""
        return

    def answered(self, session_id: str, request_id: str, user_id: str, question: str) -> int | None:
        """The turn that has answered this very message; None if none has, or if the store cannot
        tell."""
        message = message_id(session_id, request_id, user_id, question, "user")
        query = f"SELECT turn_id FROM {self.messages} WHERE id = ?"
        with suppress(RetrievalError):
            return next((turn for (turn,) in self._rows(query, str(message))), None)
        return None

    def save(self, turn: Turn) -> Saved:
        """Keep an answered turn. Of a message that was delivered twice at once the turn that is
        saved first is kept. Raises RetrievalError if the store cannot take it."""
        rows = [_row(message, turn) for message in (user_message(turn), assistant_message(turn))]
        ids = [str(row[0]) for row in rows]

        def add(run: Statement) -> None:
            if not all(self._add_message(run, row) for row in rows):
                return
            # A resumed turn may have been asked in other words before.
            others = "session_id = ? AND turn_id = ? AND id NOT IN (?, ?)"
            run(f"DELETE FROM {self.messages} WHERE {others}", turn.session_id, turn.turn_id, *ids)
            self._forget_index(run, "turn_id", turn.turn_id)
            run(f"DELETE FROM {self.turns} WHERE turn_id = ?", turn.turn_id)
            self._add_turn(run, _turn_row(turn))

        self._change(add)
        return Saved(message_ids=ids, store=self.name)

    def rows(self) -> list[tuple[Any, ...]]:
        """All turns, oldest first, as they are stored."""
        return self._rows(f"SELECT {_TURN} FROM {self.turns} ORDER BY turn_id")

    def add_all(self, other: Sessions) -> None:
        """What is in another store, to this one, which has none of it."""

        def add(run: Statement) -> None:
            for row in other.rows():
                self._add_turn(run, row)
            for row in other._rows(f"SELECT * FROM {other.messages}"):
                self._add_message(run, row)

        self._change(add)

    def _add_message(self, run: Statement, row: Sequence[object]) -> bool:
        """False for one that another turn has."""
        query = (
            f"INSERT INTO {self.messages} AS known VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET content = excluded.content,"
            " sources = excluded.sources, timestamp = excluded.timestamp"
            " WHERE known.turn_id = excluded.turn_id"
        )
        return run(query, *row) > 0

    def _add_turn(self, run: Statement, row: Sequence[Any]) -> None:
        places = ", ".join("?" * len(row))
        run(f"INSERT INTO {self.turns} ({_TURN}) VALUES ({places})", *row)
        turn_id, session_id, *_, resolved_query, response, _, _, _ = row
        self._index(run, turn_id, session_id, " ".join(terms(f"{resolved_query} {response}")))

    def take_back(self, turn: Turn) -> int:
        """Remove what this turn has left here, and nothing that another one has; how many messages
        that were. What was never kept is no error."""

        def remove(run: Statement) -> int:
            of_turn = "session_id = ? AND turn_id = ?"
            gone = run(
                f"DELETE FROM {self.messages} WHERE {of_turn}", turn.session_id, turn.turn_id
            )
            if gone:
                self._forget_index(run, "turn_id", turn.turn_id)
                run(f"DELETE FROM {self.turns} WHERE turn_id = ?", turn.turn_id)
            return gone

        return self._change(remove)

    def user_of(self, session_id: str) -> str | None:
        """The user of the session's last turn; None for an unknown session."""
        query = (
            f"SELECT user_id FROM {self.turns} WHERE session_id = ? ORDER BY turn_id DESC LIMIT 1"
        )
        return next((user for (user,) in self._rows(query, session_id)), None)

    def recent(self, session_id: str, *, before: int, limit: int) -> list[PriorTurn]:
        """The session's last turns before turn `before`, oldest first."""
        query = (
            f"SELECT turn_id, question, response FROM {self.turns}"
            " WHERE session_id = ? AND turn_id < ? ORDER BY turn_id DESC LIMIT ?"
        )
        rows = self._rows(query, session_id, before, limit)
        return [PriorTurn(turn_id=t, question=q, answer=a) for t, q, a in reversed(rows)]

    def sessions(self, limit: int) -> list[SessionSummary]:
        """The latest sessions, newest first."""
        rows = self._rows(
            "SELECT g.session_id, g.turns, g.first_at, g.last_at, opening.question FROM ("
            " SELECT session_id, count(*) AS turns, min(started_at) AS first_at,"
            " max(started_at) AS last_at, min(turn_id) AS first, max(turn_id) AS last"
            f" FROM {self.turns} GROUP BY session_id) AS g"
            f" JOIN {self.turns} AS opening ON opening.turn_id = g.first"
            " ORDER BY g.last DESC LIMIT ?",
            limit,
        )
        return [SessionSummary(*row) for row in rows]

    def exchanges(self, session_id: str) -> list[Exchange]:
        """The exchanges, oldest first; [] for an unknown session."""
        rows = self._rows(
            "SELECT turn_id, started_at, question, response, citations, abstained"
            f" FROM {self.turns} WHERE session_id = ? ORDER BY turn_id",
            session_id,
        )
        return [
            Exchange(
                turn, at, asked, said, CITATIONS.validate_python(json.loads(cited)), bool(none)
            )
            for turn, at, asked, said, cited, none in rows
        ]

    def forget(self, session_id: str) -> int:
        """Remove all that was said in it; how many turns that were."""

        def remove(run: Statement) -> int:
            self._forget_index(run, "session_id", session_id)
            run(f"DELETE FROM {self.messages} WHERE session_id = ?", session_id)
            return run(f"DELETE FROM {self.turns} WHERE session_id = ?", session_id)

        return self._change(remove)


class Statement(Protocol):
    """A statement in a transaction; how many rows it has changed."""

    def __call__(self, query: str, *values: object) -> int: ...


def _row(message: Message, turn: Turn) -> tuple[object, ...]:
    cited = json.dumps(message.sources) if message.sources else None
    return (
        *(str(message.id), turn.session_id, turn.turn_id, message.role, message.content),
        *(cited, to_text(message.timestamp)),
    )


def _turn_row(turn: Turn) -> tuple[object, ...]:
    draft, analysis = turn.sections.synthesis, turn.sections.query_analyzer
    assert draft is not None
    assert analysis is not None
    assert turn.started_at is not None
    citations = json.dumps([citation.model_dump(mode="json") for citation in draft.citations])
    return (
        *(turn.turn_id, turn.session_id, turn.request_id, turn.user_id, turn.question),
        *(analysis.resolved_query, draft.response, citations, int(draft.abstained)),
        to_text(turn.started_at),
    )


def unit_score(weight: float) -> float:
    """A BM25 weight (0 and up, greater is better) as 0..1, monotone."""
    return max(0.0, weight) / (1.0 + max(0.0, weight))
