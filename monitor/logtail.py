"""Reads on in today's error log from where it was; a new day begins a new file."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from interventions.home import error_log
from interventions.jsonl import parse_line
from monitor.source import Clock

_MOST_LINES = 500
_MOST_BYTES = 4_000_000


class LogTail:
    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._path: Path | None = None
        self._inode = 0
        self._offset = 0
        self._lines: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_MOST_LINES)

    def read(self) -> list[tuple[str, dict[str, Any]]]:
        """(key, record) of the latest lines, oldest first. Raises OSError."""
        path = error_log(self._home, self._clock().date())
        try:
            found = path.stat()
        except FileNotFoundError:
            return list(self._lines)
        if path != self._path or found.st_ino != self._inode or found.st_size < self._offset:
            self._path, self._inode = path, found.st_ino
            self._offset = max(found.st_size - _MOST_BYTES, 0)
        if found.st_size > self._offset:
            self._read_on(path)
        return list(self._lines)

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(_MOST_BYTES)
        start = 0
        # A line without its end is still being written.
        while (end := data.find(b"\n", start)) >= 0:
            record = parse_line(data[start:end])
            if record is not None:
                self._lines.append((f"{path.name}:{self._offset + start}", record))
            start = end + 1
        self._offset += start
