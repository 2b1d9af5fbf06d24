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
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from interventions.home import open_private, sync_folder
from unified_flow.errors import RetrievalError
from unified_flow.turns import blobs, events
from unified_flow.turns import lock as turn_lock
from unified_flow.turns.events import AnyEvent, TurnStarted
from unified_flow.turns.lines import Record, events_in, sealed
from unified_flow.turns.lock import JOURNAL

logger = logging.getLogger(__name__)

MAX_INLINE_BYTES = 64 * 1024
POINTER = "$file"
POINTER_BYTES = b'{"$file":'
STOPS = frozenset({"phase_completed", "turn_interrupted"})
# What a model, a tool or a person said, which may be of any length. A phase makes its output of it.
SAID = {
    "turn_started": "copied",
    "turn_resumed": "edited",
    "history_read": "turns",
    "model_called": "reply",
    "tool_started": "args",
    "tool_completed": "output",
}
LARGE = 64 * 1024  # characters
EACH = 20  # characters, for which a number or the like counts
COLLECTIONS = (dict, list, tuple)


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
    """Appends events to one turn's journal. The process that has it open runs the turn, alone.

    The lock is the file's own, so it ends with its holder's life however that ends; a child that
    is forked meanwhile gets no share in it. Raises BlockingIOError if another process, or this
    one, has it open, and FileNotFoundError if there is none and it is not to be created.
    """

    def __init__(self, folder: Path, *, create: bool) -> None:
        self.folder = folder
        self._waiting = b""
        self._unkept: list[AnyEvent] = []  # of a turn that is not kept, before `_waiting` has them
        self._end: int | None = None  # of its last whole line, once something is to follow it
        self._lines = 0
        self._names_durable = False
        self._kept = True
        flags = os.O_RDWR | os.O_APPEND
        path = folder / JOURNAL
        self._file = open_private(path, flags) if create else os.open(path, flags | os.O_CLOEXEC)
        try:
            turn_lock.take(self._file, path)
        except OSError:
            os.close(self._file)
            raise
        _open.add(self)

    def close(self) -> None:
        if self.is_closed:
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
        self.drop()

    def append(self, event: AnyEvent) -> None:
        """Raises OSError if the line cannot be written, and then nothing of it will be.

        A line that need not be durable waits for the next that must, or for `flush`: on a disk
        that is syncing, each write costs as much as the work of a small phase. Those of a turn
        that is not kept are not even made until then, as they are hardly ever needed.
        """
        if self._end is None:
            self._mend()
        durable = self.must_be_durable(event)
        if not (self._kept or durable):
            self._unkept.append(event)
            return
        self._make_lines()
        line = line_of(event, self._lines + 1, self.folder)
        if isinstance(event, TurnStarted):
            self._kept = event.persist
        if durable:
            self._write(self._waiting + line + b"\n", durable=True)
            self._waiting = b""
        else:
            self._waiting += line + b"\n"
        self._lines += 1
        if isinstance(event, events.ToolStarted) and "writes" in event.access:
            self._make_names_durable()

    def _make_lines(self) -> None:
        while self._unkept:
            line = line_of(self._unkept[0], self._lines + 1, self.folder)
            self._waiting += line + b"\n"
            self._lines += 1
            del self._unkept[0]

    @property
    def size(self) -> int:
        """Bytes of the lines so far, without what lies in files of its own."""
        return (self._end or 0) + len(self._waiting)

    @property
    def is_closed(self) -> bool:
        return self._file < 0

    def must_be_durable(self, event: AnyEvent) -> bool:
        """Whether `append` waits for the disk: not for the turn's end, which follows from the last
        phase, nor for a turn that is not kept, with which nobody goes on unless it failed."""
        if event.event in STOPS and not self._kept:
            return False
        return must_be_durable(event)

    def makes_large_lines(self, event: AnyEvent, *, durable: bool) -> bool:
        """Whether encoding what `append` writes of it may take a millisecond."""
        return (self._kept or durable) and any(map(_is_large, (*self._unkept, event)))

    def flush(self) -> None:
        """Write the pending lines, so that they survive this process and watchers see them."""
        self._make_lines()
        if self._waiting:
            self._write(self._waiting, durable=False)
            self._waiting = b""

    def drop(self) -> None:
        """Discard the pending lines: nobody will read them, or they found no room."""
        self._lines -= self._waiting.count(b"\n")
        self._waiting = b""
        self._unkept.clear()

    def _mend(self) -> None:
        """Remove what a process that died had not finished: files, and a line that lacks its end,
        which was never acknowledged and must not run into the next one.

        Only before the first line of one's own: a program changes nothing in a journal that it
        cannot read.
        """
        size = os.fstat(self._file).st_size
        if size:
            blobs.sweep(self.folder)
            content = os.pread(self._file, size, 0)
            end = content.rfind(b"\n") + 1
            if end < size:
                os.ftruncate(self._file, end)
            self._lines = content.count(b"\n")
            size = end
        self._end = size

    def _write(self, data: bytes, *, durable: bool) -> None:
        assert self._end is not None, "a line is appended before it is written"
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


def must_be_durable(event: AnyEvent) -> bool:
    """Whether it must outlive the machine before anything else happens."""
    if event.event == "tool_started":
        return "writes" in event.access
    return event.event == "phase_failed" or event.event in STOPS


def _is_large(event: AnyEvent) -> bool:
    said = SAID.get(event.event)
    return said is not None and _room_after(getattr(event, said), LARGE) <= 0


def _room_after(value: Any, room: int) -> int:
    """What the value leaves of `room`; counted only until none is left."""
    if isinstance(value, str):
        return room - len(value)
    inner = getattr(value, "__dict__", value)
    if not isinstance(inner, COLLECTIONS):
        return room - EACH
    for each in inner.values() if isinstance(inner, dict) else inner:
        room = _room_after(each, room)
        if room <= 0:
            break
    return room


def line_of(event: AnyEvent, number: int, folder: Path) -> bytes:
    """The line of the journal in `folder`, where large values then have files of their own. Raises
    OSError."""
    line = encode(event)
    if len(line) > MAX_INLINE_BYTES or POINTER_BYTES in line:
        line = encode(_shortened(event, folder))
    return sealed(line, number)


def _shortened(event: AnyEvent, folder: Path) -> dict[str, Any]:
    """The event with its large values, and what looks like a pointer, in files of their own."""
    short = event.model_dump(mode="json")
    for key, value in short.items():
        content = encode(value)
        if len(content) > MAX_INLINE_BYTES // 4 or content.startswith(POINTER_BYTES):
            short[key] = {POINTER: blobs.store(folder, content)}
    return short


_open: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    for journal in list(_open):
        journal._leave()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def read(folder: Path, *, first: bool = False) -> Iterator[AnyEvent]:
    """The events of the turn in `folder`, oldest first, or those of its first line alone.

    Raises FileNotFoundError without a journal, and RetrievalError (with file and line) as
    `lines.events_in` does; only the last line may be torn.
    """
    path = folder / JOURNAL
    try:
        with path.open("rb") as journal:
            *lines, _torn = (journal.readline() if first else journal.read()).split(b"\n")
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise RetrievalError(f"{path} cannot be read: {exc.strerror}") from exc
    return (event for _, event in events_in(lines, path, partial(whole, folder)))


def begun(folder: Path) -> TurnStarted | None:
    """How the turn in `folder` began, from the first line alone: None without a whole one, and if
    it tells of something else. Raises as `read` does."""
    event = next(read(folder, first=True), None)
    return event if isinstance(event, TurnStarted) else None


def whole(folder: Path, record: Record) -> Record:
    """The record with the values that lie in files of their own."""
    for key, value in record.items():
        if isinstance(value, dict) and set(value) == {POINTER}:
            record[key] = blobs.load(folder, value[POINTER])
    return record
