"""Which turns a list, or a change of many, is about; and the index that answers it.

The index is derived from the journals: a turn that was written to since is read anew when somebody
asks (`archive.py`), so that no turn pays for it and nothing is lost with it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.home import create_private
from unified_flow.turns.store import TurnMark

if TYPE_CHECKING:
    from unified_flow.turns.turn import Turn

TurnRow = dict[str, Any]
"""What a list shows of a turn (`Turn.as_row`)."""

VERSION = 1  # of the schema; an index of another one is made anew
SCHEMA = f"""
DROP TABLE IF EXISTS turns;
CREATE TABLE turns (
    turn_id INTEGER PRIMARY KEY, size INTEGER, written_at INTEGER, row TEXT NOT NULL,
    status TEXT NOT NULL, phase TEXT, session TEXT NOT NULL, began REAL,
    error TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL
);
PRAGMA user_version = {VERSION};
"""
BUSY_TIMEOUT_S = 5.0
CONDITIONS = {
    "status": "status = ?",
    "phase": "phase = ?",
    "session": "session = ?",
    "error": "instr(error, ?)",
    "model": "instr(model, ?)",
    "text": "instr(text, ?)",
    "since": "began >= ?",
    "before": "began < ?",
}
CASELESS = ("error", "model", "text")


@dataclass(frozen=True)
class TurnQuery:
    """All of it must hold; None asks for nothing. `status`, `session` and `phase` (where the turn
    failed, or stopped) are whole words; `error`, `model` and `text` are parts of what the failure
    says, of a model's name, and of the question or the answer, in any case. `since` and `before`
    bound the time at which the turn began."""

    status: str | None = None
    phase: str | None = None
    session: str | None = None
    error: str | None = None
    model: str | None = None
    text: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return self == TurnQuery()


class TurnIndex:
    """Turns are given by spans of their numbers, both ends included."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def marks(self, low: int, high: int) -> dict[int, TurnMark]:
        """What was last read of each turn."""
        query = "SELECT turn_id, size, written_at FROM turns WHERE turn_id BETWEEN ? AND ?"
        found = self._connection.execute(query, (low, high))
        return {turn_id: TurnMark(size, written_at) for turn_id, size, written_at in found}

    def keep(self, turn: Turn, mark: TurnMark) -> None:
        failure, began = turn.failure, turn.started_at
        error = (
            f"{failure.error_type}: {failure.error_message}\n{failure.category}" if failure else ""
        )
        models = "\n".join({visit.model for visit in turn.visits if visit.model})
        said = f"{turn.question}\n{turn.response or ''}"
        values = (
            *(turn.turn_id, mark.size, mark.written_at, json.dumps(turn.as_row()), turn.status),
            *(failure.phase if failure else turn.stopped_in, turn.session_id),
            began.timestamp() if began else None,
            *(_storable(text.casefold()) for text in (error, models, said)),
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO turns VALUES (?,?,?,?,?,?,?,?,?,?,?)", values
        )

    def drop(self, turn_ids: Iterable[int]) -> None:
        gone = [(turn_id,) for turn_id in turn_ids]
        self._connection.executemany("DELETE FROM turns WHERE turn_id = ?", gone)

    def rows(self, query: TurnQuery, low: int, high: int, limit: int) -> list[TurnRow]:
        """Newest first."""
        wanted = {name: value for name, value in asdict(query).items() if value is not None}
        where = " AND ".join(["turn_id BETWEEN ? AND ?", *(CONDITIONS[name] for name in wanted)])
        values = [_value(name, value) for name, value in wanted.items()]
        found = self._connection.execute(
            f"SELECT row FROM turns WHERE {where} ORDER BY turn_id DESC LIMIT ?",
            (low, high, *values, limit),
        )
        return [json.loads(row) for (row,) in found]

    def commit(self) -> None:
        self._connection.commit()


@contextmanager
def opened(path: Path | None) -> Iterator[TurnIndex]:
    """The index at `path`, made where it is missing or an older version's; without a path one that
    ends with this. Raises OSError, also for a newer version's, and sqlite3.Error."""
    if path is not None:
        create_private(path)
    with closing(sqlite3.connect(path or ":memory:", timeout=BUSY_TIMEOUT_S)) as connection:
        # What is removed must not stay readable in the file; what a crash costs is read again.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = OFF")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise OSError(f"{path} is the index of a newer version")
        if version < VERSION:
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        yield TurnIndex(connection)


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return _storable(value.casefold() if name in CASELESS else value)


def _storable(text: str) -> str:
    """Half a surrogate pair has no UTF-8."""
    return text.encode("utf-8", "replace").decode()
