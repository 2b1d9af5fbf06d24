"""The requests of all machines in PostgreSQL, beside the query log of each: a line, as text, under
the id of its request."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import Database, storable

logger = logging.getLogger(__name__)

_MOST_PENDING = 1000


class RequestRows:
    """A line is written in a thread of its own, and before the process ends: no answer waits for
    it. While the database is away for long it is in its file alone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: deque[tuple[str, str]] = deque(maxlen=_MOST_PENDING)
        self._writer = ThreadPoolExecutor(1, "request rows")

    def append(self, request_id: str, line: str) -> None:
        self._pending.append((storable(request_id), line))
        with suppress(RuntimeError):  # the process ends
            self._writer.submit(self._write)

    def _write(self) -> None:
        rows = [self._pending.popleft() for _ in range(len(self._pending))]
        if not rows:
            return
        sql = "INSERT INTO query_log (request_id, line) VALUES (%s, %s)"
        try:
            self._database.run(lambda connection: connection.cursor().executemany(sql, rows))
        except DatabaseAwayError as exc:
            logger.warning("%d requests are in this machine's query log alone: %s", len(rows), exc)

    def of_request(self, request_id: str) -> list[str]:
        """The lines of a request, oldest first. Raises DatabaseAwayError."""
        sql = "SELECT line FROM query_log WHERE request_id = %(id)s ORDER BY place"
        return [line for (line,) in self._database.rows(sql, id=storable(request_id))]

    def forget(self, before: datetime) -> None:
        """Remove what was written before then."""
        sql = "DELETE FROM query_log WHERE written_at < %(before)s RETURNING 1"
        self._database.rows(sql, before=before)
