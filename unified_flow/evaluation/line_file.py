"""JSON lines that survive kill -9: each is on disk before the next, and a torn one is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from interventions.home import open_private
from unified_flow.turns import lock as turn_lock


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of the file, if there is one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return [found for line in data.split(b"\n") if (found := _read(line)) is not None]


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None  # torn by a kill; what it would have said is asked again
    return found if isinstance(found, dict) else None


class LineFile:
    """Adds lines to a file; one line is one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = open_private(path, os.O_RDWR | os.O_APPEND)
        size = os.fstat(self._descriptor).st_size
        self._torn = bool(size) and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def lock(self) -> None:
        """Until it is closed or the process ends. Raises BlockingIOError if somebody has it."""
        turn_lock.take(self._descriptor, self.path)

    def add(self, record: dict[str, Any]) -> None:
        line = json.dumps(record).encode("ascii") + b"\n"
        os.write(self._descriptor, b"\n" + line if self._torn else line)
        self._torn = False
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
