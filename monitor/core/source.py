"""Where entries come from: a live queue. Reading only; nothing here touches a widget.

`Source` is what the screens know; `bundle.BundleSource` is the other one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from interventions.closing.lookup import closed_ones
from interventions.entry import Entry
from interventions.errors import CorruptQueueError, QueueError, StorageError
from interventions.home import archive_file, emergency_log, queue_file, state_folder
from interventions.putting.errorlog import Dropped
from interventions.queue import InterventionQueue
from interventions.timestamps import utc_now
from interventions.upkeep.health import health
from interventions.view.hints import for_home
from monitor.core.archived import Archived
from monitor.core.locked import LockWatch
from monitor.core.snapshot import Background, Kind, Snapshot, Trouble

_MOST_PAST = 20
Clock = Callable[[], datetime]


class Source(Protocol):
    title: str
    home: Path
    queue: InterventionQueue | None

    def mark(self) -> object:
        """Cheap; differs from the last one when `read` may answer something else."""
        ...

    def read(self) -> Snapshot:
        """Never raises for the queue's own trouble: that is in the snapshot."""
        ...

    def history(self) -> list[Entry]:
        """Closed entries, the latest first. Raises QueueError."""
        ...

    def background(self, intervention_id: str) -> Background:
        """Raises QueueError."""
        ...


class LiveSource:
    def __init__(self, queue: InterventionQueue, clock: Clock = utc_now) -> None:
        self.queue: InterventionQueue | None = queue
        self._queue = queue
        self._clock = clock
        self._seen = False
        self._archived = Archived(archive_file(queue.home))
        self._whole: Archived | None = None
        self._dropped = Dropped(queue.home)
        self._lock = LockWatch(queue.home)
        self.home = queue.home
        self.title = str(queue.home)

    def mark(self) -> object:
        """By inode too: the queue file is replaced whole, so a watch on the file itself is lost."""
        now = self._clock()
        paths = (
            queue_file(self.home),
            archive_file(self.home),
            emergency_log(self.home, now.date()),
        )
        folder = _is_folder(state_folder(self.home))
        # By the minute too: what is snoozed wakes and grows older in a file that stands still.
        minute = now.replace(second=0, microsecond=0)
        return (*map(_stamp, paths), minute, folder, self._read_only(), self._lock.held_by())

    def read(self) -> Snapshot:
        return replace(self._read(), read_only=self._read_only(), locked=self._lock.held_by())

    def _read(self) -> Snapshot:
        now = self._clock()
        try:
            trouble = self._missing()
            if trouble is not None:
                return Snapshot(now, trouble=trouble)
            self._seen = True
            state = self._queue.store.read()
        except (StorageError, OSError) as error:
            return Snapshot(now, trouble=self._trouble(error))
        try:
            self._archived.read_on()
            logged = self._dropped.by_reason()
        except (StorageError, OSError) as error:
            # What waits is known; only the figures are not.
            trouble = self._trouble(error)
            return Snapshot(now, state.entries, trouble=trouble)
        figures = health(state, self._archived.figures, logged, self._queue.limits, now)
        return Snapshot(now, state.entries, figures)

    def history(self) -> list[Entry]:
        if self._whole is None:
            self._whole = Archived(archive_file(self.home), whole=True)
        try:
            current = self._queue.entries()
            self._whole.read_on()
        except OSError as error:
            raise QueueError(
                _cannot_read(error), hint=self._hint("interventions doctor")
            ) from error
        return closed_ones(current, self._whole.entries.values())

    def background(self, intervention_id: str) -> Background:
        past = tuple(self._queue.similar(intervention_id, limit=_MOST_PAST))
        return Background(past, tuple(self._queue.journal(intervention_id)))

    def _trouble(self, error: StorageError | OSError) -> Trouble:
        if isinstance(error, OSError):
            doctor = self._hint("interventions doctor")
            return Trouble(Kind.STORAGE, _cannot_read(error), doctor)
        kind = Kind.CORRUPT if isinstance(error, CorruptQueueError) else Kind.STORAGE
        return Trouble(kind, str(error), self._hint(error.hint))

    def _hint(self, text: str) -> str:
        """Commands in it find this queue, wherever they are typed."""
        return for_home(text, self.home)

    def _missing(self) -> Trouble | None:
        folder = state_folder(self.home)
        with suppress(FileNotFoundError):
            queue_file(self.home).stat()
            return None
        if self._seen and not folder.is_dir():
            return Trouble(
                Kind.VANISHED,
                f"{folder} is gone",
                "if it was moved, quit and start again with --home FOLDER; "
                "if it comes back, so does the list",
            )
        corrupt = sorted(folder.glob("intervention_queue.corrupt-*.json"))
        if corrupt:
            return Trouble(
                Kind.CORRUPT,
                f"the queue did not parse and was set aside as {corrupt[-1].name}",
                self._hint("interventions doctor") + " rebuilds it from the logs",
            )
        if self._seen:
            return None
        if not self.home.is_dir():
            return Trouble(
                Kind.FIRST_RUN,
                f"the folder {self.home} does not exist",
                "another place: monitor --home FOLDER",
            )
        return Trouble(
            Kind.FIRST_RUN,
            f"no failure was ever put in {self.home}",
            "it fills when a turn fails (unified-flow ask), or a program uses "
            "`with intervene(...)`; another place: monitor --home FOLDER",
        )

    def _read_only(self) -> str:
        folder = state_folder(self.home)
        if _is_folder(folder) and not os.access(folder, os.W_OK):
            return f"{folder} cannot be written"
        return ""


def _is_folder(path: Path) -> bool:
    """One that cannot be looked at is none, rather than an error."""
    return os.path.isdir(path)  # noqa: PTH112


def _cannot_read(error: OSError) -> str:
    return f"cannot read {error.filename}: {error.strerror}"


def _stamp(path: Path) -> tuple[int, int, int] | str | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
    return (found.st_mtime_ns, found.st_ino, found.st_size)
