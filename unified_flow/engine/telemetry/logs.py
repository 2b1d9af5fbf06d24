"""`logs/flow.log`, for programs that want the flow's log in a file.

Warnings and worse, and every line of the guardrails; redacted, one line each. A full file becomes
`flow.log.1` and replaces the one before.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from interventions.home import open_private
from interventions.plaintext import one_line
from interventions.secrets.redaction import redact, redact_text
from interventions.times import to_text, utc_now

GUARDRAILS = "unified_flow.guardrails"
REQUESTS = "unified_flow.requests"
_OF_ANY_RECORD = {*vars(logging.makeLogRecord({})), "message", "taskName"}
FILE = "flow.log"
MAX_BYTES = 5 * 1024 * 1024  # of one file; there are two at most
MAX_LINE = 10_000  # characters

_lock = threading.Lock()
_handlers: dict[Path, _PrivateFile] = {}


@contextmanager
def logged(home: Path) -> Iterator[None]:
    """Log to the file meanwhile. For a program's own process: a library leaves logging to its
    user. May be entered again, also by several threads: each line is written once."""
    path = home / "logs" / FILE
    with _lock:
        handler = _handlers.setdefault(path, _PrivateFile(path))
        handler.users += 1
        if handler.users == 1:
            _attach(handler)
    try:
        yield
    finally:
        with _lock:
            handler.users -= 1
            if not handler.users:
                del _handlers[path]
                for logger in _loggers():
                    logger.removeHandler(handler)
                if not _handlers:
                    _loggers()[1].removeHandler(_terminal)


def _attach(handler: _PrivateFile) -> None:
    ours, queues = _loggers()
    if not queues.hasHandlers():
        queues.addHandler(_terminal)  # a full queue shows there too
    for logger in (ours, queues):
        logger.addHandler(handler)
    logging.getLogger(GUARDRAILS).setLevel(logging.INFO)


def _loggers() -> tuple[logging.Logger, logging.Logger]:
    return logging.getLogger("unified_flow"), logging.getLogger("interventions")


class _Terminal(logging.Handler):
    """A line that repeats the one before is left out: what is full is full for a whole batch."""

    _last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if (line := self.format(record)) != self._last:
            self._last = line
            with suppress(OSError, ValueError):  # a full disk, or a terminal that is gone
                print(line, file=sys.stderr)


_terminal = _Terminal(logging.WARNING)


class JsonLines(logging.Handler):
    """A JSON object a line on stdout: warnings and worse, and what was answered to each request,
    with the fields that the record has (`service`, `status_code`, `request_id`, ...)."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.name == REQUESTS

    def emit(self, record: logging.LogRecord) -> None:
        line: dict[str, Any] = {
            "timestamp": to_text(utc_now()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _OF_ANY_RECORD},
        }
        if record.exc_info and "traceback" not in line:
            line["traceback"] = logging.Formatter().formatException(record.exc_info)
        with suppress(OSError, ValueError):
            print(json.dumps(redact(line), ensure_ascii=False, default=str), flush=True)

    @contextmanager
    def attached(self) -> Iterator[None]:
        for logger in _loggers():
            logger.addHandler(self)
        logging.getLogger(REQUESTS).setLevel(logging.INFO)
        try:
            yield
        finally:
            for logger in _loggers():
                logger.removeHandler(self)


class _PrivateFile(logging.Handler):
    """Opened for each line, of which there are few, so that the file may be moved at any time."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.users = 0
        self._path = path

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.name == GUARDRAILS

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = one_line(redact_text(self.format(record), MAX_LINE))
            line = f"{to_text(utc_now())} {record.levelname} {record.name} {said}\n"
            data = line.encode("utf-8", "replace")
        except Exception:  # noqa: BLE001 - logging must not fail what is logged
            self.handleError(record)
            return
        try:
            # One write, so that lines of several processes do not mix.
            descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, data)
                self._turn_over(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            # A full disk must be reported; if stderr is on it too, nothing can be done.
            with suppress(OSError, ValueError):
                sys.stderr.write(line)

    def _turn_over(self, descriptor: int) -> None:
        """Once, however many processes find the file full."""
        if os.fstat(descriptor).st_size < MAX_BYTES:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.samestat(self._path.stat(), os.fstat(descriptor)):
            self._path.replace(self._path.with_name(f"{FILE}.1"))
