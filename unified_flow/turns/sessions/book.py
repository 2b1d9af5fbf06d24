"""The sessions as a person sees them: list, show, export, delete."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from interventions.secrets.redaction import redact_for_asker, redact_text
from unified_flow.turns.results import Citation
from unified_flow.turns.sessions.store import SessionDatabase, file_of
from unified_flow.turns.turn import Turn


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


class SessionBook:
    """Only answered turns are in it; the others are in their journals (`archive.py`)."""

    def __init__(self, path: Path) -> None:
        self._database = SessionDatabase(path)

    @classmethod
    def of(cls, home: Path) -> Self:
        return cls(file_of(home))

    def close(self) -> None:
        self._database.close()

    def sessions(self, limit: int) -> list[SessionSummary]:
        """The latest sessions, newest first. Raises RetrievalError, as everything here."""
        rows = self._database.read(
            "SELECT g.session_id, g.turns, g.first_at, g.last_at, opening.question FROM ("
            " SELECT session_id, count(*) AS turns, min(started_at) AS first_at,"
            " max(started_at) AS last_at, min(turn_id) AS first, max(turn_id) AS last"
            " FROM turns GROUP BY session_id) AS g"
            " JOIN turns AS opening ON opening.turn_id = g.first ORDER BY g.last DESC LIMIT ?",
            (limit,),
        )
        return [SessionSummary(*row) for row in rows]

    def exchanges(self, session_id: str) -> list[Exchange]:
        """The exchanges, oldest first; [] for an unknown session."""
        rows = self._database.read(
            "SELECT turn_id, started_at, question, response, citations, abstained"
            " FROM turns WHERE session_id = ? ORDER BY turn_id",
            (session_id,),
        )
        return [
            Exchange(
                turn_id=turn_id,
                at=at,
                question=question,
                response=response,
                citations=[Citation.model_validate(each) for each in json.loads(citations)],
                abstained=bool(abstained),
            )
            for turn_id, at, question, response, citations, abstained in rows
        ]

    def forget(self, session_id: str) -> int:
        """Remove all that was said in it; how many turns that were."""
        if not self._database.path.exists():
            return 0
        with self._database.open() as connection:
            # Without these, what was said would stay in free pages and in the log of writes.
            connection.execute("PRAGMA secure_delete = ON")
            gone = self._forget(connection, session_id)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone

    def _forget(self, connection: sqlite3.Connection, session_id: str) -> int:
        with connection:
            connection.execute("DELETE FROM turn_terms WHERE session_id = ?", (session_id,))
            connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,))
            connection.execute("INSERT INTO turn_terms (turn_terms) VALUES ('optimize')")
            return connection.execute(
                "DELETE FROM turns WHERE session_id = ?", (session_id,)
            ).rowcount


_MARKS = re.compile(r"[\\`*<\[\]&]|(?<!\w)_|_(?!\w)")  # of Markdown; snake_case is none


def markdown(
    session_id: str,
    exchanges: Sequence[Exchange],
    unanswered: Sequence[Turn],
    mask: Callable[[str], str] = redact_for_asker,
) -> str:
    """Everything in the order of the turns. `mask` is for the answers and what they cite;
    a question is redacted strictly."""
    parts: dict[int, str] = {turn.turn_id: "\n".join(_open_end(turn, mask)) for turn in unanswered}
    parts |= {exchange.turn_id: "\n".join(_exchange(exchange, mask)) for exchange in exchanges}
    body = "\n\n".join(parts[turn_id] for turn_id in sorted(parts))
    return f"# Session {session_id}\n\n{body}\n"


def _exchange(exchange: Exchange, mask: Callable[[str], str]) -> Iterator[str]:
    yield f"## {_line(redact_text(exchange.question))}"
    yield ""
    yield f"*turn {exchange.turn_id}, {exchange.at}*"
    yield ""
    yield mask(exchange.response)
    if exchange.citations:
        yield ""
        for citation in exchange.citations:
            yield f"- `{citation.source}`: {_line(mask(citation.quote))}"


def _open_end(turn: Turn, mask: Callable[[str], str]) -> Iterator[str]:
    yield f"## {_line(redact_text(turn.question))}"
    yield ""
    if turn.status == "clarify":
        yield f"*turn {turn.turn_id} asked back:* {mask(turn.response or '')}"
        return
    if turn.status == "answered":
        yield f"*turn {turn.turn_id} answered; the session keeps it no more*"
        return
    where = f" at {turn.failure.phase}" if turn.failure else ""
    yield f"*turn {turn.turn_id} {turn.status}{where}; there is no answer*"


def _line(text: str) -> str:
    """On one line, and only text: a question or a quote brings no tags and no links."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
