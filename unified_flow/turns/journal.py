"""The journal of a turn on disk: `turns/turn_000123/journal.jsonl` and the files beside it.

One line an event. It is written before a model or a tool is called, so that it survives the death
of the process, and fsync'd when a phase completes or fails and before a tool that writes starts,
so that it survives the death of the machine. A last line that is torn was never acknowledged and
is dropped on reading.
A value too large for a line lies in a file of its own (`blobs.py`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from interventions.home import open_private, sync_folder
from unified_flow.errors import RetrievalError
from unified_flow.turns import blobs
from unified_flow.turns import lock as turn_lock
from unified_flow.turns.events import (
    READER,
    SUMMED,
    VERSION,
    AnyEvent,
    PhaseCompleted,
    PhaseFailed,
    ToolStarted,
    TurnCompleted,
    TurnInterrupted,
    TurnResumed,
    TurnStarted,
)

KEY = "crc32"
_TAIL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}$')


def with_sum(line: bytes) -> bytes:
    """`line` is a JSON object with at least one field."""
    return b'%s,"crc32":"%08x"}' % (line[:-1], crc32(line))


def check_sum(line: bytes, *, needed: bool) -> None:
    """Raises ValueError for a line that is not what was written, and, where each has a sum
    (`needed`), for one without."""
    found = _TAIL.search(line)
    if found is None:
        if needed:
            raise ValueError("the line has no checksum")
        return
    if int(found[1], 16) != crc32(line[: found.start()] + b"}"):
        raise ValueError("the line is not what was written: its checksum differs")


logger = logging.getLogger(__name__)

BEGINNINGS = (TurnStarted, TurnResumed)
MAX_INLINE_BYTES = 64 * 1024
POINTER = "$file"
POINTER_BYTES = b'{"$file":'
NAME = "journal.jsonl"
UPDATE = "update unified-flow"


def encode(value: Any) -> bytes:
    """Compact JSON; anything a model or a tool said comes back the same."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        # Half a surrogate pair has no UTF-8; escaped in ASCII it survives.
        plain = to_jsonable_python(value)
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def digest(value: Any) -> str:
    return hashlib.sha256(encode(value)).hexdigest()


class Journal:
    """Appends events to one turn's journal. Whoever has it open runs the turn, alone.

    The lock is the file's own, so it ends with its holder's life however that ends; a child that
    is forked meanwhile gets no share in it. Raises BlockingIOError if another process, or this
    one, has it open, and FileNotFoundError if there is none and it is not to be created.
    """

    def __init__(self, folder: Path, *, create: bool) -> None:
        self.folder = folder
        self._waiting = b""
        self._names_durable = False
        self._kept = True
        flags = os.O_RDWR | os.O_APPEND
        path = folder / NAME
        self._file = open_private(path, flags) if create else os.open(path, flags | os.O_CLOEXEC)
        try:
            turn_lock.take(self._file, path)
            if not create:
                blobs.sweep(folder)
            self._end = _cut_torn_line(self._file)
        except OSError:
            os.close(self._file)
            raise
        _open.add(self)

    def close(self) -> None:
        if self._file < 0:
            return  # this process is a child; its parent goes on with it
        try:
            self.flush()
        except OSError as exc:
            # The caller who needed these lines on disk got the error of the first write.
            logger.critical("the journal in %s lacks its last lines: %s", self.folder, exc)
        finally:
            turn_lock.release(self._file)
            self._leave()

    def _leave(self) -> None:
        _open.discard(self)
        os.close(self._file)
        self._file = -1
        self._waiting = b""

    def append(self, event: AnyEvent) -> None:
        """Raises OSError if the line cannot be written, and then nothing of it will be.

        A line that need not be durable waits for the next that must, or for `flush`: on a disk
        that is syncing, each write costs as much as the work of a small phase.
        """
        line = encode(event)
        if len(line) > MAX_INLINE_BYTES or POINTER_BYTES in line:
            line = encode(self._shorten(event))
        line = with_sum(line)
        if isinstance(event, TurnStarted):
            self._kept = event.persist
        if _durable(event, kept=self._kept):
            self._write(self._waiting + line + b"\n", durable=True)
            self._waiting = b""
            if isinstance(event, ToolStarted):
                self._make_names_durable()
        else:
            self._waiting += line + b"\n"

    def flush(self) -> None:
        """Write the pending lines, so that they survive this process and watchers see them."""
        if self._waiting:
            self._write(self._waiting, durable=False)
            self._waiting = b""

    def drop(self) -> None:
        """Discard the pending lines: nobody will read them, or they found no room."""
        self._waiting = b""

    def _write(self, data: bytes, *, durable: bool) -> None:
        try:
            blobs.write_all(self._file, data)
            if durable:
                # The first one makes the new folder durable too where a file's creation is
                # logged with it (ext4, XFS, btrfs). An fsync of both folders would cost a turn
                # a quarter, so elsewhere only a write waits for it.
                os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def _make_names_durable(self) -> None:
        """A tool that writes is about to start: on any file system this turn will be found."""
        if not self._names_durable:
            sync_folder(self.folder)
            sync_folder(self.folder.parent)
            self._names_durable = True

    def _shorten(self, event: AnyEvent) -> dict[str, Any]:
        """The event with its large values, and what looks like a pointer, in files of their own."""
        short = event.model_dump(mode="json")
        for key, value in short.items():
            content = encode(value)
            if len(content) > MAX_INLINE_BYTES // 4 or content.startswith(POINTER_BYTES):
                short[key] = {POINTER: blobs.store(self.folder, content)}
        return short


def _durable(event: AnyEvent, *, kept: bool) -> bool:
    match event:
        case PhaseCompleted() | TurnInterrupted():
            # Nobody goes on with a turn that is not kept, unless it failed.
            return kept
        case PhaseFailed():
            return True
        case TurnCompleted():
            return False  # follows from the last phase, which is durable already; close writes it
        case ToolStarted():
            return "writes" in event.access
        case _:
            return False


_open: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    for journal in list(_open):
        journal._leave()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def _cut_torn_line(descriptor: int) -> int:
    """The size without it: a line that lacks its end was never acknowledged, and must not run into
    the next one."""
    size = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    end, block = size, 64 * 1024
    while end > 0:
        begin = max(0, end - block)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            os.ftruncate(descriptor, begin + found + 1)
            return begin + found + 1
        end = begin
    os.ftruncate(descriptor, 0)
    return 0


def read(folder: Path) -> Iterator[AnyEvent]:
    """The events of the turn in `folder`, oldest first.

    Raises FileNotFoundError without a journal, and RetrievalError (with file and line) for a
    line that is damaged or was changed; only the last line may be torn.
    """
    with _readable(folder / NAME) as journal:
        *lines, _torn = journal.read().split(b"\n")
    return _events(folder, lines)


def begun(folder: Path) -> TurnStarted | None:
    """How the turn in `folder` began, from the first line alone: None without a whole one, and if
    it tells of something else. Raises as `read` does."""
    with _readable(folder / NAME) as journal:
        *lines, _torn = journal.readline().split(b"\n")
    event = next(_events(folder, lines), None)
    return event if isinstance(event, TurnStarted) else None


@contextmanager
def _readable(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as journal:
            yield journal
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise RetrievalError(f"{path} cannot be read: {exc.strerror}") from exc


def _events(folder: Path, lines: Iterable[bytes]) -> Iterator[AnyEvent]:
    path, summed = folder / NAME, False
    for number, line in enumerate(lines, 1):
        try:
            check_sum(line, needed=summed)
            event = READER.validate_python(_whole(folder, json.loads(line)))
            if isinstance(event, BEGINNINGS):
                summed = event.version >= SUMMED
                check_sum(line, needed=summed)
        except (ValueError, RecursionError, OSError) as exc:
            if _of_a_newer_program(exc):
                raise RetrievalError(
                    f"{path}:{number}: this program does not know such an event", hint=UPDATE
                ) from exc
            raise RetrievalError(
                f"{path}:{number}: the journal is damaged: {first_line(exc)}",
                hint="the turn cannot be read; ask its question again",
            ) from exc
        if isinstance(event, BEGINNINGS) and event.version > VERSION:
            raise RetrievalError(
                f"{path} is journal version {event.version}; this program reads up to {VERSION}",
                hint=UPDATE,
            )
        yield event


def _of_a_newer_program(exc: Exception) -> bool:
    """An intact line of an unknown kind."""
    return isinstance(exc, ValidationError) and exc.errors()[0]["type"] == "union_tag_invalid"


def first_line(exc: Exception) -> str:
    """The first line of the exception's message, or its name."""
    return (str(exc).splitlines() or [type(exc).__name__])[0]


def _whole(folder: Path, record: Any) -> Any:
    if not isinstance(record, dict):
        raise ValueError("a line is no JSON object")
    record.pop(KEY, None)
    for key, value in record.items():
        if isinstance(value, dict) and set(value) == {POINTER}:
            record[key] = blobs.load(folder, value[POINTER])
    return record
