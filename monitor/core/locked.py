"""Whether another process keeps the queue from being changed, and which."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from interventions.home import lock_file
from interventions.storage.lock_holder import holders

# A change takes milliseconds, and between two of them the lock is free.
_LONG_S = 2.0


class LockWatch:
    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = lock_file(home)
        self._clock = clock
        self._since: float | None = None
        self._who: list[str] = []

    def held_by(self) -> str:
        """Who was found to hold the lock at every look for two seconds; "" where nobody was, or
        where the system does not tell (any but Linux). Taking nothing, it is in nobody's way."""
        who = holders(self._path)
        if not who or who != self._who:
            self._who, self._since = who, self._clock() if who else None
        if self._since is None or self._clock() - self._since < _LONG_S:
            return ""
        return ", ".join(who)
