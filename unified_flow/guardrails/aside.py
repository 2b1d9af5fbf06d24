"""Decisions that the database could not take: lines of JSON, private, until it can."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from interventions.home import open_private
from unified_flow.events import stamp

logger = logging.getLogger("unified_flow.guardrails")
ASIDE = "ai_decisions_waiting.jsonl"


class Aside:
    """Safe among threads and processes. Raises OSError where the disk takes nothing either."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def put(self, row: dict[str, Any]) -> None:
        kept = row | {"created_at": stamp(row["created_at"])}
        line = json.dumps(kept, default=str) + "\n"
        descriptor = open_private(self.file, os.O_WRONLY | os.O_APPEND)
        try:
            with self._alone():
                os.write(descriptor, line.encode())
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def taken(self) -> Iterator[list[dict[str, Any]]]:
        """What waits; gone once the block ends well. Nothing while somebody else takes it."""
        alone = self._alone(wait_s=0)
        if not self._holds_any() or not _got(alone):
            yield []
            return
        try:
            yield [row for row in map(_read, self.file.read_bytes().splitlines()) if row]
            os.truncate(self.file, 0)
        finally:
            alone.release()

    def _holds_any(self) -> bool:
        try:
            return self.file.stat().st_size > 0
        except FileNotFoundError:
            return False

    def _alone(self, wait_s: float = -1) -> FileLock:
        # A lock of its own each time: one among threads too.
        return FileLock(f"{self.file}.lock", timeout=wait_s, mode=0o600)


def _got(lock: FileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    return True


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        row = dict(json.loads(line))
        return row | {"created_at": datetime.fromisoformat(row["created_at"])}
    except (ValueError, TypeError, KeyError):
        logger.critical("a decision that waited cannot be read: %r", line[:200])
        return None
