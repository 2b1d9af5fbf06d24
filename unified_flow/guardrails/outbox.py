"""Decisions that wait for a database that could not take them: lines of JSON in a private file."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from interventions.storage import jsonl
from interventions.times import to_text

logger = logging.getLogger("unified_flow.guardrails")
WAITING = "ai_decisions_waiting.jsonl"


class DecisionOutbox:
    """Safe among threads and processes. Raises OSError where the disk takes nothing either."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def dead_letters(self) -> Path:
        """Rows that no database takes, however often it is tried: for a person to look at."""
        return self.file.with_name(f"{self.file.name}.refused")

    def put(self, row: dict[str, Any]) -> None:
        with self._lock():
            jsonl.append(self.file, _line(row), durable=True)

    def reject(self, row: dict[str, Any], why: str) -> None:
        """To the dead letters, so that the row holds up no other."""
        logger.critical("a decision was refused, see %s: %s", self.dead_letters, why)
        jsonl.append(self.dead_letters, _line(row), durable=True)

    @contextmanager
    def drain(self) -> Iterator[list[dict[str, Any]]]:
        """The rows that wait; removed once the block ends well. None while another drains it."""
        lock = self._lock(wait_s=0)
        with suppress(Timeout), suppress(FileNotFoundError):
            if self.file.stat().st_size > 0:
                lock.acquire()
        if not lock.is_locked:
            yield []
            return
        try:
            yield list(self._rows())
            os.truncate(self.file, 0)
        finally:
            lock.release()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for line in self.file.read_bytes().splitlines():
            row = _parsed(line)
            if row is not None:
                yield row
                continue
            logger.critical("a decision that waited cannot be read, see %s", self.dead_letters)
            jsonl.append(self.dead_letters, line, durable=True)

    def _lock(self, wait_s: float = -1) -> FileLock:
        # A new one each time, so that it holds among threads too.
        return FileLock(f"{self.file}.lock", timeout=wait_s, mode=0o600)


def _line(row: dict[str, Any]) -> bytes:
    stored = row | {"created_at": to_text(row["created_at"])}
    return json.dumps(stored, default=str).encode()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = dict(json.loads(line))
        return row | {"created_at": datetime.fromisoformat(row["created_at"])}
    except (ValueError, TypeError, KeyError):
        return None
