"""What the monitor shows at one moment, of a live queue or an exported file. Reading only."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import cast

from interventions.entry import Entry, Transition, complete, is_open, short_ids, similar
from interventions.errors import CorruptQueueError, QueueError, StorageError
from interventions.health import Health
from interventions.home import lock_file, queue_file, state_folder
from interventions.plaintext import for_home, one_line
from interventions.queue import InterventionQueue
from interventions.storage.file_store import FileStore
from interventions.storage.lock import holders
from interventions.storage.queue_file import QueueState, decode
from interventions.storage.store import parse_entry
from interventions.times import utc_now

_MOST_PAST = 20
MOST_CLOSED = 2000
# A change takes milliseconds, and between two of them the lock is free.
_LOCKED_AFTER_S = 2.0

Clock = Callable[[], datetime]


class TroubleKind(StrEnum):
    """Why there is no queue to show, or not all of it; each has its own words on the screen."""

    FIRST_RUN = "first run"
    VANISHED = "gone"
    CORRUPT = "corrupt"
    STORAGE = "unreadable"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class Trouble:
    """`what` is the matter and `todo` is what a person does about it."""

    kind: TroubleKind
    what: str
    todo: str


@dataclass(frozen=True)
class Snapshot:
    """`read_only` says why nothing can be changed, `locked` which process keeps the queue locked.
    `of_all_states`: closed entries belong in the list too, as in an exported file."""

    taken_at: datetime
    entries: tuple[Entry, ...] = ()
    health: Health | None = None
    trouble: Trouble | None = None
    read_only: str = ""
    locked: str = ""
    of_all_states: bool = False

    @property
    def open_entries(self) -> list[Entry]:
        return [entry for entry in self.entries if is_open(entry)]


@dataclass(frozen=True)
class Pulse:
    """What the header says beside the queue: `failures` of the last hour in steps of it, how many
    turns are interrupted, and by whom entries were closed since the person's last look."""

    failures: Sequence[int] = ()
    interrupted: int = 0
    closed_by: Sequence[str] = ()


@dataclass(frozen=True)
class Background:
    """What other files hold about one entry: past resolutions, who did what, and what has changed
    since its turn stopped."""

    past: tuple[Entry, ...] = ()
    journal: tuple[Transition, ...] = ()
    changes: tuple[str, ...] = ()


class LiveSource:
    """`stamp` is cheap, and differs from the last one when `read` may answer something else. `read`
    never raises for the queue's own trouble, which is in the snapshot; the others raise QueueError.
    A queue that many machines share has no file to be gone, locked or closed.
    """

    def __init__(self, queue: InterventionQueue, clock: Clock = utc_now) -> None:
        self.queue = queue
        self.home = queue.home
        self.title = str(queue.home)
        self._is_file = isinstance(queue.store, FileStore)
        self._clock = clock
        self._was_there = False
        self._parse = lru_cache(MOST_CLOSED + 500)(parse_entry)  # keys wait while all is parsed
        self._open: frozenset[str] = frozenset()
        self._holders, self._held_since_s = list[str](), 0.0

    def stamp(self) -> object:
        """By the minute too: snoozed entries wake, and ages grow, in a queue that stands still."""
        try:
            mark = self.queue.store.stamp()
        except OSError as error:
            mark = str(error)
        return mark, self._clock().replace(second=0, microsecond=0), self._obstacles()

    def read(self) -> Snapshot:
        now, entries, figures = self._clock(), tuple[Entry, ...](), None
        try:
            gone = self._was_there and not _is_folder(state_folder(self.home))
            state = QueueState() if gone and self._is_file else self.queue.store.read()
            entries, trouble = state.entries, self._absence()
            if trouble is None:
                self._was_there = True
                figures = self.queue.health(state, now)
                trouble = self._lost(entries) or self._damaged(state.unusable)
        except StorageError as error:
            corrupt = isinstance(error, CorruptQueueError)
            kind = TroubleKind.CORRUPT if corrupt else TroubleKind.STORAGE
            trouble = Trouble(kind, str(error).removeprefix("CORRUPT: "), error.hint)
        except OSError as error:
            what = f"cannot read {error.filename}: {error.strerror}"
            trouble = Trouble(TroubleKind.STORAGE, what, "interventions doctor")
        if trouble is not None:  # its commands find this queue, wherever they are typed
            trouble = replace(trouble, todo=for_home(trouble.todo, self.home))
        return Snapshot(now, entries, figures, trouble, *self._obstacles())

    def history(self) -> list[Entry]:
        return list(islice(self.queue.closed(self._parse), MOST_CLOSED))

    def background(self, intervention_id: str) -> Background:
        past = tuple(self.queue.similar(intervention_id, limit=_MOST_PAST))
        return Background(past, tuple(self.queue.journal(intervention_id)))

    def _absence(self) -> Trouble | None:
        """What is wrong if the queue file, and the logs that it could be made from, are missing."""
        folder, file = state_folder(self.home), queue_file(self.home)
        if not self._is_file or file.exists():
            return None
        kind, todo = TroubleKind.FIRST_RUN, "another place: monitor --home FOLDER"
        if self._was_there and not _is_folder(folder):
            kind, what = TroubleKind.VANISHED, f"{folder} is gone"
            todo = (
                "if it was moved, quit and start again with --home FOLDER; "
                "if it comes back, so does the list"
            )
        elif self._was_there:
            kind, todo = TroubleKind.VANISHED, "if it comes back, so does the list"
            what = f"{file} is gone, and so are the logs that it was made from"
        elif not self.home.is_dir():
            what = f"the folder {self.home} does not exist"
        else:
            what = f"no failure was ever put in {self.home}"
            todo = (
                "it fills when a turn fails (unified-flow ask), or a program uses "
                f"`with intervene(...)`; {todo}"
            )
        return Trouble(kind, what, todo)

    def _lost(self, entries: Sequence[Entry]) -> Trouble | None:
        """Entries that were open here, and now are in no file, which nothing but a loss does, even
        where the logs that could tell are lost too."""
        here = {entry["id"] for entry in entries}
        gone = {own for own in self._open - here if not self.queue.store.archived_one(own)}
        self._open = frozenset(entry["id"] for entry in entries if is_open(entry)) | gone
        if not gone:
            return None
        return Trouble(
            TroubleKind.VANISHED,
            f"{len(gone)} that were open are in no file any more: {short_ids(sorted(gone))}",
            "run `interventions doctor`; if they were removed on purpose, start anew",
        )

    def _damaged(self, unusable: Sequence[tuple[object, str]]) -> Trouble | None:
        if not unusable:
            return None
        what = f"{len(unusable)} of the entries cannot be read: {one_line(unusable[0][1])}"
        todo = "run `interventions doctor`: it sets them aside"
        return Trouble(TroubleKind.DAMAGED, what, todo)

    def _obstacles(self) -> tuple[str, str]:
        """Why nothing can be changed at all; and which processes held the lock at every look for
        two seconds, as far as the system says (Linux): the kernel's list is read and no lock taken,
        so that looking is in nobody's way."""
        if not self._is_file:
            return "", ""
        folder, found = state_folder(self.home), holders(lock_file(self.home))
        may_write = not _is_folder(folder) or os.access(folder, os.W_OK)
        if found != self._holders:
            self._holders, self._held_since_s = found, time.monotonic()
        long = time.monotonic() - self._held_since_s >= _LOCKED_AFTER_S
        return "" if may_write else f"{folder} cannot be written", ", ".join(found) if long else ""


class BundleSource:
    """The same of an exported bundle, or of a copy of a queue file. It is read once, and nothing in
    it changes. Raises QueueError when the file is neither.
    """

    queue = None

    def __init__(self, path: Path, clock: Clock) -> None:
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


def _is_folder(path: Path) -> bool:
    """A folder that cannot be looked at is none, rather than an error."""
    return os.path.isdir(path)  # noqa: PTH112
