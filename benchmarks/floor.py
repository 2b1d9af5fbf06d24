"""The floor of what is durable, and how often a piece of code makes the disk wait: for the others.

Standard library only: the peers of `peers.py` live in an environment of their own.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

LINE = json.dumps({"phase": "x" * 16, "output": "y" * 400}).encode() + b"\n"
WARM_UP = 5  # turns


def floor(folder: Path, appends: int) -> float:
    """Milliseconds for `appends` fsync'd appends of a line as long as a phase's to a new file."""
    path = Path(tempfile.mktemp(dir=folder))
    started = perf_counter()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for _ in range(appends):
        os.write(descriptor, LINE)
        os.fsync(descriptor)
    os.close(descriptor)
    return (perf_counter() - started) * 1000


def measure(
    turn: Callable[[int], None], folder: Path, turns: int, appends: int
) -> dict[str, float]:
    """p50 in milliseconds of a turn and of the floor, interleaved."""
    floors, took = [], []
    for number in range(turns + WARM_UP):
        floors.append(floor(folder, appends))
        started = perf_counter()
        turn(number)
        took.append((perf_counter() - started) * 1000)
    return {
        "ms": statistics.median(took[WARM_UP:]),
        "floor_ms": statistics.median(floors[WARM_UP:]),
    }


class Syncs:
    """Counts the calls of `os.fsync` while it is entered."""

    def __enter__(self) -> Syncs:
        self.count = 0
        self._real = os.fsync
        os.fsync = self._counted
        return self

    def __exit__(self, *exc: object) -> None:
        os.fsync = self._real

    def _counted(self, descriptor: int) -> None:
        self.count += 1
        self._real(descriptor)
