"""`logs/flow.log`, for programs that want the flow's log in a file.

Warnings and worse, and every line of the guardrails; redacted, one line each. A full file becomes
`flow.log.1` and replaces the one before.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Self

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
WAITING = 10_000  # lines for a reader who is slow
CLOSING_S = 1.0

logger = logging.getLogger("unified_flow")
LOGGERS = (logger, logging.getLogger("interventions"))

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
        if not LOGGERS[1].hasHandlers():
            LOGGERS[1].addHandler(_terminal)  # a full queue shows there too
        for each in LOGGERS:
            each.addHandler(handler)
        logging.getLogger(GUARDRAILS).setLevel(logging.INFO)
    try:
        yield
    finally:
        with _lock:
            handler.users -= 1
            if not handler.users:
                del _handlers[path]
                for each in LOGGERS:
                    each.removeHandler(handler)
                if not _handlers:
                    LOGGERS[1].removeHandler(_terminal)


class _Terminal(logging.Handler):
    """A line that repeats the one before is left out: what is full is full for a whole batch."""

    _last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if (line := self.format(record)) != self._last:
            self._last = line
            with suppress(OSError, ValueError):  # a full disk, or a terminal that is gone
                print(line, file=sys.stderr)


_terminal = _Terminal(logging.WARNING)


class LineWriter:
    """Lines for stdout (1) or stderr (2), whose reader may stop: a thread writes them, and `lose`
    is called for each that finds no room. With logging.handlers.QueueListener a reader who stops
    keeps the process from ending: its `stop` waits for the last line however long that takes."""

    def __init__(self, descriptor: int, lose: Callable[[], object], most: int = WAITING) -> None:
        self._descriptor = descriptor
        self._lose = lose
        self._lines: queue.Queue[bytes | None] = queue.Queue(most)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            self._lines.put_nowait(f"{line}\n".encode("utf-8", "replace"))
        except queue.Full:
            self._lose()

    def close(self) -> None:
        """Wait for what is left, but not for a reader who has stopped."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=CLOSING_S)
        self._thread.join(CLOSING_S)

    def _write(self) -> None:
        # Not by print: whoever is left behind in it holds a lock that the end of Python wants.
        while data := self._lines.get():
            with suppress(OSError):
                while data:
                    data = data[os.write(self._descriptor, data) :]


class FailureRecords:
    """The error records of one request over HTTP, which wait for what its client gets: the status
    of its answer stands in them, and that of the server that failed beside it."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, dict[str, Any], BaseException | None]] = deque()
        self._answer: dict[str, Any] | None = None

    def add(self, message: str, fields: dict[str, Any], error: BaseException | None) -> None:
        """Add a line; it may come from a thread, and after the answer."""
        self._waiting.append((message, fields, error))
        self._write()

    def answered(self, **fields: Any) -> bool:
        """Write them with these fields; whether there were any."""
        self._answer = fields
        return self._write()

    def _write(self) -> bool:
        written = False
        with suppress(IndexError):  # another thread may take the last one in between
            while self._waiting and self._answer is not None:
                message, fields, error = self._waiting.popleft()
                upstream = {"upstream_status_code": fields["status_code"]}
                logger.error(message, extra={**fields, **upstream, **self._answer}, exc_info=error)
                written = True
        return written


of_request: ContextVar[FailureRecords | None] = ContextVar("of_request", default=None)


def log_error(message: str, fields: dict[str, Any], error: BaseException | None) -> None:
    """An error record with these fields, once the request is answered whose failure it is."""
    if (records := of_request.get()) is not None:
        records.add(message, fields, error)
    else:
        logger.error(message, extra=fields, exc_info=error)


class LineHandler(logging.Handler):
    """Puts `lines` on stdout (1) or stderr (2): of what the flow and the queue log while it is
    entered."""

    def __init__(self, descriptor: int, lose: Callable[[], object], level: int = 0) -> None:
        super().__init__(level)
        self._descriptor = descriptor
        self._lose = lose

    def __enter__(self) -> Self:
        self.lines = LineWriter(self._descriptor, self._lose)
        for each in LOGGERS:
            each.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for each in LOGGERS:
            each.removeHandler(self)
        self.lines.close()


class JsonLines(LineHandler):
    """A JSON object a line on stdout: warnings and worse, and what was answered to each request,
    with the fields that the record has (`service`, `status_code`, `request_id`, ...)."""

    def __init__(self, lose: Callable[[], object]) -> None:
        super().__init__(1, lose)
        logging.getLogger(REQUESTS).setLevel(logging.INFO)

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
        self.lines.put(json.dumps(redact(line), ensure_ascii=False, default=str))


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
