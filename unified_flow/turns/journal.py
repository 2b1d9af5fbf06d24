"""The journal of a turn on disk, `turns/turn_000123/journal.jsonl` with the files beside it, and
the right to write it.

A turn that is not kept has no folder, but the one line with which it began in `running/123`, until
more of it has to be written: a folder costs more than a search.

One line an event. It is written before a model or a tool is called, so that it survives the death
of the process, and fsync'd when a phase completes or fails and before a tool that writes starts,
so that it survives the death of the machine. A last line that is torn was never acknowledged and
is dropped on reading.
A value too large for a line lies in a file of its own (`blobs.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from interventions.home import create_private, make_private_folder, open_private, sync_folder
from unified_flow.errors import RetrievalError
from unified_flow.lib.compact_json import encode
from unified_flow.turns import blobs
from unified_flow.turns import lock as turn_lock
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.lines import Record, events_in, sealed
from unified_flow.turns.lock import JOURNAL, PRUNED
from unified_flow.turns.store import TurnLease

logger = logging.getLogger(__name__)

PAGE = "context.md"
# To lay out so much for people takes less than a millisecond.
SHOWN_AT_ONCE_BYTES = 64 * 1024
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


class Journal:
    """One turn's journal. The process that has it open runs the turn, alone.

    The lock is the file's own, so it ends with its holder's life however that ends; a child that
    is forked meanwhile gets no share in it. Raises BlockingIOError if another process, or this
    one, has it open, and FileNotFoundError if there is none and it is not to be created. `at`: in
    place of a folder, until it `settles` there.
    """

    def __init__(self, folder: Path, *, create: bool, at: Path | None = None) -> None:
        self.folder = folder
        self.settled = at is None
        self.size = 0  # bytes of its whole lines, once something is to follow them
        self._lines: int | None = None
        self._names_durable = False
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        path = self.path = at or folder / JOURNAL
        self._file = open_private(path, flags | os.O_EXCL) if create else os.open(path, flags)
        try:
            turn_lock.take(self._file, path)
        except OSError:
            os.close(self._file)
            raise
        _open.add(self)

    @property
    def is_closed(self) -> bool:
        """Whether it is closed, as it is in a child process: its parent goes on with it."""
        return self._file < 0

    def close(self) -> None:
        if not self.is_closed:
            turn_lock.release(self._file)
            self._leave()

    def _leave(self) -> None:
        _open.discard(self)
        os.close(self._file)
        self._file = -1

    def write(self, new: Sequence[AnyEvent], *, durable: bool) -> None:
        """Add a line for each. Raises OSError, and then none of them is ever read."""
        if not self.settled and (self.size or durable):
            settle(self.path, self.folder)
            self.settled = True
        if self._lines is None:
            self._lines = self._mend()
        numbered = enumerate(new, self._lines + 1)
        data = b"".join([line_of(event, n, self.folder) + b"\n" for n, event in numbered])
        try:
            blobs.write_all(self._file, data)
            if durable:
                # The first one makes the new folder durable too where a file's creation is
                # logged with it (ext4, XFS, btrfs). An fsync of both folders would cost a turn
                # a quarter, so elsewhere only a write waits for it.
                os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self.size)
            raise
        self.size += len(data)
        self._lines += len(new)
        if not self._names_durable and any(map(_begins_to_write, new)):
            # On any file system this turn will be found.
            sync_folder(self.folder)
            sync_folder(self.folder.parent)
            self._names_durable = True

    def _mend(self) -> int:
        """Remove what a process that died had not finished: files, and a line that lacks its end,
        which was never acknowledged and must not run into the next one. How many lines there are.

        Only before the first line of one's own: a program changes nothing in a journal that it
        cannot read.
        """
        found = os.fstat(self._file).st_size
        if not found:
            return 0
        blobs.sweep(self.folder)
        content = os.pread(self._file, found, 0)
        self.size = content.rfind(b"\n") + 1
        if self.size < found:
            os.ftruncate(self._file, self.size)
        return content.count(b"\n")


class JournalLease(TurnLease):
    """`mark` stays if it is not released; `on_disk` is that of the store. `large`: to encode, or to
    lay out, what is said in the turn may take a millisecond."""

    def __init__(
        self,
        turn_id: int,
        journal: Journal,
        mark: Path,
        on_disk: Callable[..., Awaitable[object]],
        *,
        kept: bool,
        large: bool,
    ) -> None:
        self.turn_id = turn_id
        self._journal = journal
        self._mark = mark
        self._on_disk = on_disk
        self._kept = kept
        self._large = large
        self._waiting: list[AnyEvent] = []

    async def append(self, event: AnyEvent) -> None:
        """A line that need not be durable waits for the next that must, or for `flush`: on a disk
        that is syncing, each write costs as much as the work of a small phase."""
        # Nobody goes on with a turn that is not kept, unless it failed.
        if must_be_durable(event) and (self._kept or event.event not in STOPS):
            await self._write([*self._waiting, event], durable=True)
            self._waiting.clear()
        else:
            self._waiting.append(event)

    async def flush(self) -> None:
        if self._waiting:
            await self._write(self._waiting, durable=False)
            self._waiting.clear()

    async def _write(self, events: Sequence[AnyEvent], *, durable: bool) -> None:
        self._large = self._large or any(map(is_large, events))
        work = partial(self._journal.write, events, durable=durable)
        if durable or self._large:
            await self._on_disk(work, slow=self._large)
        else:
            work()

    def drop(self) -> None:
        self._waiting.clear()

    async def show(self, events: Sequence[AnyEvent]) -> None:
        """`context.md`, whole, whenever the turn stops: it may lack the events before a kill.

        Not after every phase: another file's dirty pages make each fsync of the journal dearer,
        by two fifths of the floor in benchmarks/turn.py.
        """
        from unified_flow.turns.context_page import markdown

        def write() -> None:
            text = "".join(map(markdown, events)).encode("utf-8", "replace")
            descriptor = open_private(self._journal.folder / PAGE, os.O_WRONLY | os.O_TRUNC)
            try:
                blobs.write_all(descriptor, text)
            finally:
                os.close(descriptor)

        if self._large or self._journal.size > SHOWN_AT_ONCE_BYTES:
            await asyncio.to_thread(write)
        else:
            write()

    async def remove(self, *, reserve: bool = False) -> None:
        """Renamed first, so that a process which dies meanwhile leaves no part of a turn, and to a
        name that no other has. The newest leaves an empty folder, where its number is reserved."""
        if self._journal.is_closed:
            return
        folder = self._journal.folder
        self.drop()
        # First: a mark without a folder is a turn that is not kept.
        self._mark.unlink(missing_ok=True)
        if not self._journal.settled:
            self._journal.close()
            return
        aside = folder.with_name(f"{PRUNED}{os.urandom(4).hex()}_{folder.name}")
        folder.rename(aside)
        await self.release()
        if reserve:
            make_private_folder(folder)
        await self._on_disk(partial(delete, aside), slow=self._large)

    async def release(self) -> None:
        """The mark goes while nobody else can run the turn, and stays if its last lines found no
        room."""
        if self._journal.is_closed:
            return
        try:
            await self.flush()
        except OSError as exc:
            # Whoever needed these lines on disk got the error of the first write.
            folder = self._journal.folder
            logger.critical("the journal in %s lacks its last lines: %s", folder, exc)
        else:
            with suppress(OSError):
                self._mark.unlink(missing_ok=True)
        finally:
            self._journal.close()


def delete(folder: Path) -> None:
    try:  # nearly always the journal is all there is
        (folder / JOURNAL).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)


def settle(running: Path, folder: Path) -> None:
    """Give the turn in the file `running` its folder. Raises OSError."""
    make_private_folder(folder)
    try:
        os.link(running, folder / JOURNAL)
    except FileExistsError:
        pass  # another process has done it for the one that died
    except OSError:  # there are no links here
        running.rename(folder / JOURNAL)
        with suppress(OSError):  # the disk is full: `turns recover` reads all turns
            create_private(running)


def must_be_durable(event: AnyEvent) -> bool:
    """Whether it must outlive the machine before anything else happens."""
    return event.event == "phase_failed" or event.event in STOPS or _begins_to_write(event)


def _begins_to_write(event: AnyEvent) -> bool:
    return event.event == "tool_started" and "writes" in event.access


def is_large(event: AnyEvent) -> bool:
    """Whether encoding it may take a millisecond."""
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


def read(folder: Path, *, first: bool = False, at: Path | None = None) -> Iterator[AnyEvent]:
    """The events of the turn in `folder`, oldest first, or those of its first line alone. `at` is
    the file of one that has no folder.

    Raises FileNotFoundError without a journal, and RetrievalError (with file and line) as
    `lines.events_in` does; only the last line may be torn.
    """
    path = at or folder / JOURNAL
    try:
        with path.open("rb") as journal:
            *lines, _torn = (journal.readline() if first else journal.read()).split(b"\n")
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise RetrievalError(f"{path} cannot be read: {exc.strerror}") from exc
    return (event for _, event in events_in(lines, path, partial(whole, folder)))


def whole(folder: Path, record: Record) -> Record:
    """The record with the values that lie in files of their own."""
    for key, value in record.items():
        if isinstance(value, dict) and set(value) == {POINTER}:
            record[key] = blobs.load(folder, value[POINTER])
    return record
