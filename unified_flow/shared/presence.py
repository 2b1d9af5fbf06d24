"""Which workers there are: one lives while it has a session in the database, and says that it does.

Every worker looks after the others. The runs of one without a session are given to others; the
sessions of one that says nothing any more, as it is frozen or its machine is gone, are ended first,
which frees its locks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from psycopg.rows import dict_row

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import LIVING, Connection, Database
from unified_flow.turns.events import VERSION

logger = logging.getLogger(__name__)

LOOK_S = 0.5
SILENT_S = 8.0
# The sessions of all workers end at once when the database restarts: each has time to come back,
# also on a machine that is slow.
GRACE_S = 5.0
AGAIN_S = 10.0  # whoever gave the runs of a worker to others may have died over it
FORGOTTEN_S = 3600.0
TIDY_S = 300.0

_SAY = f"""
    WITH said AS (
        INSERT INTO workers (worker_id, run_by, turns, journal_version, draining)
        VALUES (%(worker_id)s, %(run_by)s, %(turns)s, %(version)s, %(draining)s)
        ON CONFLICT (worker_id) DO UPDATE SET seen_at = clock_timestamp(), draining = %(draining)s
    ), gone AS (
        UPDATE workers SET reaped_at = clock_timestamp()
        WHERE %(reaps)s AND worker_id NOT IN {LIVING}
        AND coalesce(reaped_at < clock_timestamp() - make_interval(secs => {AGAIN_S}), true)
        RETURNING worker_id
    )
    SELECT
        ARRAY(SELECT worker_id FROM gone),
        (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         JOIN workers ON application_name = worker_id AND datname = current_database()
         WHERE worker_id != %(worker_id)s
         AND seen_at < clock_timestamp() - make_interval(secs => {SILENT_S}))
"""
_FORGET = f"""
    DELETE FROM workers WHERE worker_id NOT IN {LIVING}
    AND seen_at < clock_timestamp() - make_interval(secs => {FORGOTTEN_S})
"""


@dataclass(eq=False)
class Presence:
    """The presence of this worker, from `begin` on. `lost` is given the ids of workers that are
    gone; its own id, while `tidy` is called, now and then, and after the database was away."""

    database: Database
    run_by: str
    turns: int
    lost: Callable[[Collection[str]], object]
    tidy: Callable[[], object]
    draining: bool = False
    _session: Connection | None = None
    _tidy_at: float = field(default_factory=lambda: monotonic() + TIDY_S)
    _grace_ends_at: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Raises DatabaseAwayError."""
        self._look()
        self._thread = threading.Thread(target=self._run, daemon=True, name="presence")
        self._thread.start()

    def end(self) -> None:
        """The others see to what may be left once the process has ended."""
        self._ended.set()
        self._thread.join()
        if self._session is not None:
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
        with self.database.away():
            session = self._connected()
            values = {
                "worker_id": self.database.program,
                "run_by": self.run_by,
                "turns": self.turns,
                "version": VERSION,
                "draining": self.draining,
                "reaps": monotonic() > self._grace_ends_at,
            }
            row = session.execute(_SAY, values).fetchone()
            if row is not None and row[0]:
                self.lost(row[0])
                session.execute(_FORGET)
            if monotonic() > self._tidy_at:
                self._tidy_at = monotonic() + TIDY_S
                # It may take longer than others wait for a word of this worker.
                threading.Thread(target=self.tidy, daemon=True, name="tidy").start()
                self.lost([self.database.program])

    def _connected(self) -> Connection:
        if self._session is None or self._session.closed:
            if self._session is not None:
                self._grace_ends_at = self._tidy_at = monotonic() + GRACE_S
            self._session = self.database.connect()
        return self._session


def workers_of(database: Database) -> list[dict[str, Any]]:
    """The workers that live, with the turns that each runs (`running`)."""
    query = f"""
        SELECT worker_id, run_by, turns, journal_version, draining, started_at, seen_at,
            ARRAY(
                SELECT turn_id FROM turns WHERE live AND turns.worker_id = workers.worker_id
                ORDER BY turn_id
            ) AS running
        FROM workers WHERE worker_id IN {LIVING} ORDER BY started_at
    """
    with database.connection() as connection:
        return connection.cursor(row_factory=dict_row).execute(query.encode()).fetchall()
