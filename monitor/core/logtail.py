"""Reads on in today's error log from where it was; a new day begins a new file."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from interventions.home import error_log
from interventions.storage.jsonl import Tail, parse_line
from monitor.core.source import Clock

MOST_LINES = 500
_MOST_BYTES = 4_000_000


class LogTail:
    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._tail: Tail | None = None
        self._lines: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MOST_LINES)

    def read(self) -> list[tuple[str, dict[str, Any]]]:
        """(key, record) of the latest lines, the newest first. Raises OSError."""
        path = error_log(self._home, self._clock().date())
        if self._tail is None or self._tail.path != path:
            self._tail = Tail(path, at_most=_MOST_BYTES)
        for offset, line in self._tail.read()[1]:
            record = parse_line(line)
            if record is not None:
                self._lines.appendleft((f"{path.name}:{offset}", record))
        return list(self._lines)
