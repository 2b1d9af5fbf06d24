"""Where entries come from: a live queue. Reading only; nothing here touches a widget.

`Source` is what the screens know; `bundle.BundleSource` is the other one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from interventions.entry import Entry
from interventions.errors import CorruptQueueError, QueueError, StorageError
from interventions.health import health
from interventions.home import archive_file, emergency_log, queue_file, state_folder
from interventions.queue import InterventionQueue
from interventions.timestamps import utc_now
from monitor.archived import Archived
from monitor.snapshot import Background, Kind, Snapshot, Trouble

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
        self.home = queue.home
        self.title = str(queue.home)

    def mark(self) -> object:
        """By inode too: the queue file is replaced whole, so a watch on the file itself is lost."""
        today = self._clock().date()
        paths = (queue_file(self.home), archive_file(self.home), emergency_log(self.home, today))
        return (*map(_stamp, paths), state_folder(self.home).is_dir(), self._read_only())

    def read(self) -> Snapshot:
        now, read_only = self._clock(), self._read_only()
        trouble = self._missing()
        if trouble is not None:
            return Snapshot(now, trouble=trouble, read_only=read_only)
        self._seen = True
        try:
            state = self._queue.store.read()
            figures = health(state, self._archived.read(), self.home, self._queue.limits, now)
        except CorruptQueueError as error:
            return Snapshot(now, trouble=Trouble(Kind.CORRUPT, str(error), error.hint))
        except StorageError as error:
            return Snapshot(now, trouble=Trouble(Kind.STORAGE, str(error), error.hint))
        except OSError as error:  # the archive or the emergency log, which health counts
            what = f"cannot read {error.filename}: {error.strerror}"
            return Snapshot(now, trouble=Trouble(Kind.STORAGE, what, "interventions doctor"))
        return Snapshot(now, state.entries, figures, read_only=read_only)

    def history(self) -> list[Entry]:
        return self._queue.history()

    def background(self, intervention_id: str) -> Background:
        try:
            past = tuple(self._queue.similar(intervention_id))
            return Background(past, tuple(self._queue.journal(intervention_id)))
        except OSError as error:
            raise QueueError(f"cannot read {error.filename}: {error.strerror}") from error

    def _missing(self) -> Trouble | None:
        folder = state_folder(self.home)
        if queue_file(self.home).exists():
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
                "interventions doctor rebuilds it from the logs",
            )
        if self._seen:
            return None
        return Trouble(
            Kind.FIRST_RUN,
            f"no failure was ever put in {self.home}",
            "it fills when a turn fails (unified-flow ask), or a program uses "
            "`with intervene(...)`; another place: monitor --home FOLDER",
        )

    def _read_only(self) -> str:
        folder = state_folder(self.home)
        if folder.is_dir() and not os.access(folder, os.W_OK):
            return f"{folder} cannot be written"
        return ""


def _stamp(path: Path) -> tuple[int, int, int] | str | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
    return (found.st_mtime_ns, found.st_ino, found.st_size)
