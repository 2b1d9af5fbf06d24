"""Where entries come from: a live queue, or an exported file. Reading only."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from interventions.entry import (
    Entry,
    Transition,
    complete,
    is_open,
    short_ids,
    similar,
)
from interventions.errors import CorruptQueueError, QueueError, StorageError
from interventions.home import (
    archive_file,
    emergency_log,
    lock_file,
    mark_of,
    queue_file,
    state_folder,
)
from interventions.plaintext import for_home, one_line
from interventions.queue import InterventionQueue
from interventions.storage.lock import holders
from interventions.storage.queue_file import decode
from interventions.storage.store import SharedStore
from interventions.times import utc_now
from monitor.core.snapshot import Background, Clock, Snapshot, Trouble, TroubleKind

_MOST_PAST = 20
MOST_CLOSED = 2000
# A change takes milliseconds, and between two of them the lock is free.
_LOCKED_AFTER_S = 2.0


class LiveSource:
    """`stamp` is cheap, and differs from the last one when `read` may answer something else. `read`
    never raises for the queue's own trouble, which is in the snapshot; the others raise QueueError.
    """

    def __init__(self, queue: InterventionQueue, clock: Clock = utc_now) -> None:
        self.queue: InterventionQueue | None = queue
        self.home = queue.home
        self.title = str(queue.home)
        self._queue = queue
        self._clock = clock
        self._was_there = False
        self._open: frozenset[str] = frozenset()
        self._lock = LockWatch(queue.home)

    def stamp(self) -> object:
        """By inode too: the queue file is replaced whole, so a watch on the file itself is lost.
        By the minute too: snoozed entries wake, and ages grow, in a file that stands still."""
        now = self._clock()
        paths = (
            queue_file(self.home),
            archive_file(self.home),
            emergency_log(self.home, now.date()),
        )
        return (
            *map(_file_stamp, paths),
            now.replace(second=0, microsecond=0),
            _is_folder(state_folder(self.home)),
            self._read_only(),
            self._lock.holder(),
        )

    def read(self) -> Snapshot:
        return replace(self._read(), read_only=self._read_only(), locked=self._lock.holder())

    def _read(self) -> Snapshot:
        now = self._clock()
        try:
            if trouble := self._vanished():
                return Snapshot(now, trouble=trouble)
            state = self._queue.store.read()
            trouble = self._first_run()
        except (StorageError, OSError) as error:
            return Snapshot(now, trouble=self._trouble(error))
        if trouble is not None:
            return Snapshot(now, trouble=trouble)
        self._was_there = True
        try:
            figures = self._queue.health(state, now)
            trouble = self._lost(state.entries)
        except StorageError as error:
            # The entries are known; only the figures are not.
            return Snapshot(now, state.entries, trouble=self._trouble(error))
        if state.unusable and trouble is None:
            count, why = len(state.unusable), one_line(state.unusable[0][1])
            what = f"{count} of the entries cannot be read: {why}"
            todo = self._hint("run `interventions doctor`: it sets them aside")
            trouble = Trouble(TroubleKind.DAMAGED, what, todo)
        return Snapshot(now, state.entries, figures, trouble)

    def _lost(self, entries: Sequence[Entry]) -> Trouble | None:
        """Entries that were open here, and now are in no file, which nothing but a loss does, even
        where the logs that could tell are lost too."""
        here = {entry["id"] for entry in entries}
        gone = {own for own in self._open - here if not self._queue.store.archived_one(own)}
        self._open = frozenset(entry["id"] for entry in entries if is_open(entry)) | gone
        if not gone:
            return None
        return Trouble(
            TroubleKind.VANISHED,
            f"{len(gone)} that were open are in no file any more: {short_ids(sorted(gone))}",
            self._hint("run `interventions doctor`; if they were removed on purpose, start anew"),
        )

    def history(self) -> list[Entry]:
        return self._queue.history(MOST_CLOSED)

    def background(self, intervention_id: str) -> Background:
        past = tuple(self._queue.similar(intervention_id, limit=_MOST_PAST))
        return Background(past, tuple(self._queue.journal(intervention_id)))

    def _trouble(self, error: StorageError | OSError) -> Trouble:
        if isinstance(error, OSError):
            doctor = self._hint("interventions doctor")
            return Trouble(TroubleKind.STORAGE, _cannot_read(error), doctor)
        corrupt = isinstance(error, CorruptQueueError)
        kind = TroubleKind.CORRUPT if corrupt else TroubleKind.STORAGE
        return Trouble(kind, str(error).removeprefix("CORRUPT: "), self._hint(error.hint))

    def _hint(self, text: str) -> str:
        """Commands in it find this queue, wherever they are typed."""
        return for_home(text, self.home)

    def _vanished(self) -> Trouble | None:
        folder = state_folder(self.home)
        if not self._was_there or folder.is_dir():
            return None
        todo = (
            "if it was moved, quit and start again with --home FOLDER; "
            "if it comes back, so does the list"
        )
        return Trouble(TroubleKind.VANISHED, f"{folder} is gone", todo)

    def _first_run(self) -> Trouble | None:
        if queue_file(self.home).exists():
            return None
        kind, todo = TroubleKind.FIRST_RUN, "another place: monitor --home FOLDER"
        if self._was_there:
            kind, todo = TroubleKind.VANISHED, "if it comes back, so does the list"
            what = f"{queue_file(self.home)} is gone, and so are the logs that it was made from"
        elif not self.home.is_dir():
            what = f"the folder {self.home} does not exist"
        else:
            what = f"no failure was ever put in {self.home}"
            todo = (
                "it fills when a turn fails (unified-flow ask), or a program uses "
                f"`with intervene(...)`; {todo}"
            )
        return Trouble(kind, what, todo)

    def _read_only(self) -> str:
        folder = state_folder(self.home)
        if _is_folder(folder) and not os.access(folder, os.W_OK):
            return f"{folder} cannot be written"
        return ""


class SharedSource(LiveSource):
    """A queue that many machines share, and that says itself when it has changed: there is no file
    to be gone, locked or closed."""

    def __init__(self, queue: InterventionQueue, store: SharedStore) -> None:
        super().__init__(queue)
        self._store = store

    def stamp(self) -> object:
        return self._store.stamp(), self._clock().replace(second=0, microsecond=0)

    def read(self) -> Snapshot:
        return self._read()

    def _vanished(self) -> Trouble | None:
        return None

    def _first_run(self) -> Trouble | None:
        return None


def live_source(queue: InterventionQueue) -> LiveSource:
    if isinstance(queue.store, SharedStore):
        return SharedSource(queue, queue.store)
    return LiveSource(queue)


class BundleSource:
    """The same of an exported bundle, or of a copy of a queue file. It is read once, and nothing in
    it changes. Raises QueueError when the file is neither.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.queue: InterventionQueue | None = None
        self.home = path.parent
        self.title = f"{path.name} (read-only)"
        self._clock = clock
        self._entries, self._similar, self._journal = _read_bundle(path)

    def stamp(self) -> object:
        return None

    def read(self) -> Snapshot:
        entries = tuple(self._entries)
        return Snapshot(self._clock(), entries, read_only="an exported file", of_all_states=True)

    def history(self) -> list[Entry]:
        return [entry for entry in (*self._entries, *self._similar) if not is_open(entry)]

    def background(self, intervention_id: str) -> Background:
        journal = tuple(line for line in self._journal if line.get("id") == intervention_id)
        entry = next((e for e in self._entries if e["id"] == intervention_id), None)
        return Background(tuple(similar(entry, self._similar) if entry else ()), journal)


Source = LiveSource | BundleSource


def _read_bundle(path: Path) -> tuple[list[Entry], list[Entry], list[Transition]]:
    """(its entries, earlier ones that were alike, who did what)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise QueueError(f"cannot read {path}: {error.strerror}") from error
    try:
        document = json.loads(data)
        if isinstance(document, dict) and "intervention" in document:
            past = [complete(entry) for entry in document.get("similar") or []]
            journal = [line for line in document.get("journal") or [] if isinstance(line, dict)]
            return [complete(document["intervention"])], past, cast(list[Transition], journal)
        return list(decode(data)[0].entries), [], []
    except (ValueError, TypeError, RecursionError) as error:
        raise QueueError(
            f"{path} is no exported intervention: {error}",
            hint="make one with: interventions export ID -o FILE",
        ) from error


class LockWatch:
    """Whether another process keeps the queue from being changed. It reads the kernel's list and
    takes no lock, so that looking is in nobody's way."""

    def __init__(self, home: Path) -> None:
        self._path = lock_file(home)
        self._since_s = 0.0
        self._holders: list[str] = []

    def holder(self) -> str:
        """Who held the lock at every look for two seconds; "" if nobody did, or where the system
        does not say (any but Linux)."""
        found = holders(self._path)
        if found != self._holders:
            self._holders, self._since_s = found, time.monotonic()
        long = time.monotonic() - self._since_s >= _LOCKED_AFTER_S
        return ", ".join(found) if long else ""


def _is_folder(path: Path) -> bool:
    """A folder that cannot be looked at is none, rather than an error."""
    return os.path.isdir(path)  # noqa: PTH112


def _cannot_read(error: OSError) -> str:
    return f"cannot read {error.filename}: {error.strerror}"


def _file_stamp(path: Path) -> tuple[int, int, int] | str | None:
    try:
        return mark_of(path)
    except OSError as error:
        return str(error)
