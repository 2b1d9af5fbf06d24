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
from unified_flow.turns.events import stamp

logger = logging.getLogger("unified_flow.guardrails")
ASIDE = "ai_decisions_waiting.jsonl"
REFUSED = ".refused"


class Aside:
    """Safe among threads and processes. Raises OSError where the disk takes nothing either."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def refused(self) -> Path:
        """What no database takes, however often it is tried: a person's to look at."""
        return self.file.with_name(self.file.name + REFUSED)

    def put(self, row: dict[str, Any]) -> None:
        with self._alone():
            _append(self.file, _line(row))

    def refuse(self, row: dict[str, Any], why: str) -> None:
        """For good, so that it stops no other."""
        logger.critical("a decision was refused, see %s: %s", self.refused, why)
        _append(self.refused, _line(row))

    @contextmanager
    def taken(self) -> Iterator[list[dict[str, Any]]]:
        """What waits; gone once the block ends well. Nothing while somebody else takes it."""
        alone = self._alone(wait_s=0)
        if not self._holds_any() or not _got(alone):
            yield []
            return
        try:
            yield list(self._readable())
            os.truncate(self.file, 0)
        finally:
            alone.release()

    def _readable(self) -> Iterator[dict[str, Any]]:
        for line in self.file.read_bytes().splitlines():
            row = _read(line)
            if row is not None:
                yield row
                continue
            logger.critical("a decision that waited cannot be read, see %s", self.refused)
            _append(self.refused, line + b"\n")

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


def _line(row: dict[str, Any]) -> bytes:
    kept = row | {"created_at": stamp(row["created_at"])}
    return json.dumps(kept, default=str).encode() + b"\n"


def _append(file: Path, line: bytes) -> None:
    descriptor = open_private(file, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        row = dict(json.loads(line))
        return row | {"created_at": datetime.fromisoformat(row["created_at"])}
    except (ValueError, TypeError, KeyError):
        return None
