"""Notifications of PostgreSQL, received on a session of their own (LISTEN)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import Database

PAUSE_S = 1.0
_LOOK_S = 1.0


class Listener:
    """Calls `received` with the payload of each notification; with None whenever some may have been
    missed: once it listens, and every second while the database is away. It is called in a thread
    of the listener's own."""

    def __init__(
        self, database: Database, channel: str, received: Callable[[str | None], object]
    ) -> None:
        self._database, self._channel, self._received = database, channel, received
        self._closed = threading.Event()
        threading.Thread(target=self._run, name=f"listen {channel}", daemon=True).start()

    def close(self) -> None:
        """Notifications may still come for a second."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except (DatabaseAwayError, psycopg.Error):
                self._received(None)
                self._closed.wait(PAUSE_S)

    def _listen(self) -> None:
        with self._database.connect(f"listen {self._channel}") as session:
            session.execute(f"LISTEN {self._channel}".encode())
            self._received(None)
            while not self._closed.is_set():
                for notification in session.notifies(timeout=_LOOK_S):
                    self._received(notification.payload)
