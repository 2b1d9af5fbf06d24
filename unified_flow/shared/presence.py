"""Which workers there are: each holds an advisory lock that ends with it, and says that it lives.

Every worker looks after the others. The runs of one whose lock is gone are given to others; the
sessions of one that says nothing any more, as it is frozen or its machine is gone, are ended first,
which frees its locks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from psycopg.rows import class_row

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import Database
from unified_flow.shared.lock_session import HELD_KEYS, LockSession
from unified_flow.turns.events import VERSION

logger = logging.getLogger(__name__)

WORKER_LOCK = 3 << 48  # and a number made of its id
LOOK_S = 0.5
SILENT_S = 8.0
# The sessions of all workers end at once when the database restarts: each has time to come back.
GRACE_S = 2.0

AGAIN_S = 10.0  # whoever gave the runs of a worker to others may have died over it
FORGOTTEN_S = 3600.0
TIDY_S = 300.0

_KEY = f"({WORKER_LOCK} + (hashtextextended(worker_id, 0) & {(1 << 48) - 1}))"
_IS_LOCKED = f"{_KEY} IN ({HELD_KEYS})"
_IS_DUE = f"""NOT {_IS_LOCKED}
    AND coalesce(reaped_at < clock_timestamp() - make_interval(secs => {AGAIN_S}), true)"""
_SAY = f"""
    WITH said AS (
        INSERT INTO workers (worker_id, run_by, turns, journal_version, draining)
        VALUES (%(worker_id)s, %(run_by)s, %(turns)s, %(version)s, %(draining)s)
        ON CONFLICT (worker_id) DO UPDATE SET seen_at = clock_timestamp(), draining = %(draining)s
    )
    SELECT
        (SELECT count(*) FROM workers WHERE worker_id != %(worker_id)s AND {_IS_DUE}),
        (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         JOIN workers ON application_name = worker_id AND datname = current_database()
         WHERE worker_id != %(worker_id)s
         AND seen_at < clock_timestamp() - make_interval(secs => {SILENT_S}))
"""
_TAKE = f"""
    UPDATE workers SET reaped_at = clock_timestamp()
    WHERE worker_id != %(worker_id)s AND {_IS_DUE} RETURNING worker_id
"""
_MINE = f"SELECT {_KEY} FROM workers WHERE worker_id = %(worker_id)s"
_LEAVE = "DELETE FROM workers WHERE worker_id = %(worker_id)s RETURNING 1"
_FORGET = f"""
    DELETE FROM workers WHERE NOT {_IS_LOCKED}
    AND seen_at < clock_timestamp() - make_interval(secs => {FORGOTTEN_S}) RETURNING 1
"""


class Presence:
    """Of one worker, from `begin` on. `lost` is given the ids of workers that are gone; `tidy` is
    called now and then."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        run_by: str,
        turns: int,
        lost: Callable[[Collection[str]], object],
        tidy: Callable[[], object],
    ) -> None:
        self._session = LockSession(database)
        self._values = {
            "worker_id": worker_id,
            "run_by": run_by,
            "turns": turns,
            "version": VERSION,
            "draining": False,
        }
        self._lost = lost
        self._tidy = tidy
        self._tidy_at = monotonic() + TIDY_S
        self._key = 0
        self._grace_ends_at = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="presence")

    def begin(self) -> None:
        """Raises DatabaseAwayError."""
        self._look()
        self._thread.start()

    def drain(self) -> None:
        self._values["draining"] = True

    def end(self) -> None:
        """With no turn left."""
        self._ended.set()
        self._thread.join()
        with suppress(DatabaseAwayError):
            self._session.one(
                "DELETE FROM workers WHERE worker_id = %(worker_id)s RETURNING 1", self._values
            )
        self._session.close()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self._look()
            except DatabaseAwayError as exc:
                logger.warning("%s", exc)
            except Exception:
                # Without it nobody takes over the turns of a worker that dies.
                logger.exception("the other workers could not be looked after")

    def _look(self) -> None:
        due, _ = self._session.one(_SAY, self._values)
        if monotonic() > self._tidy_at:
            self._tidy_at = monotonic() + TIDY_S
            # It may take longer than others wait for a word of this worker.
            threading.Thread(target=self._tidy, daemon=True, name="tidy").start()
        if not self._key:
            self._key = self._session.one(
                f"SELECT {_KEY} FROM workers WHERE worker_id = %(worker_id)s", self._values
            )[0]
        if not self._session.holds(self._key) and self._session.try_lock(self._key):
            self._grace_ends_at = monotonic() + GRACE_S
        if not due or monotonic() < self._grace_ends_at:
            return
        gone = self._session.all(_TAKE, self._values)
        if gone:
            self._lost([worker_id for (worker_id,) in gone])
        self._session.one(_FORGET, self._values)


@dataclass(frozen=True)
class WorkerRow:
    """A worker that lives, and the turns that it runs."""

    worker_id: str
    run_by: str
    turns: int
    journal_version: int
    draining: bool
    started_at: datetime
    seen_at: datetime
    running: list[int]


def workers_of(database: Database) -> list[WorkerRow]:
    query = f"""
        SELECT worker_id, run_by, turns, journal_version, draining, started_at, seen_at,
            ARRAY(
                SELECT turn_id FROM turns WHERE live AND turns.worker_id = workers.worker_id
                ORDER BY turn_id
            ) AS running
        FROM workers WHERE {_IS_LOCKED} ORDER BY started_at
    """
    with database.connection() as connection:
        cursor = connection.cursor(row_factory=class_row(WorkerRow))
        return cursor.execute(query.encode()).fetchall()
