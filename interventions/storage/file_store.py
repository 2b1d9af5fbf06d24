"""The queue as a JSON file, replaced whole and durably under the lock."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from interventions.entry import Entry, Transition
from interventions.errors import CorruptQueueError, LockTimeoutError
from interventions.home import (
    PRIVATE_FILE_MODE,
    archive_file,
    lock_file,
    queue_file,
    sync_folder,
    transitions_file,
    turns_folder,
)
from interventions.storage.group_commit import Letter, answer_all
from interventions.storage.history import Archive, Journal
from interventions.storage.lock import FairLock
from interventions.storage.queue_file import (
    Lines,
    decode,
    encode,
    read_state,
    reading,
    storage_error,
)
from interventions.storage.store import Admit, Limits, PutResult, QueueState, Transaction
from interventions.storage.turn_overflow import TurnOverflow
from interventions.times import utc_now

TEMPORARY_PREFIX = ".intervention_queue."
CORRUPT_PREFIX = "intervention_queue.corrupt-"


class FileStore:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = queue_file(home)
        self._journal = Journal(transitions_file(home))
        self._archive = Archive(archive_file(home))
        self._turns = TurnOverflow(turns_folder(home))
        self._lock = FairLock(lock_file(home))
        self._cache = _FileCache()
        self._swept = False

    def read(self) -> QueueState:
        return read_state(self._path)

    @contextmanager
    def transaction(self, timeout_s: float) -> Iterator[Transaction]:
        with self._lock.hold(timeout_s), self._work() as work:
            yield work

    def submit(self, failure: Entry, limits: Limits, timeout_s: float, admit: Admit) -> PutResult:
        """A waiting writer leaves a letter; the lock's holder commits all letters in one write."""
        letter = Letter(self._home, failure, limits)
        try:
            with self._lock.hold(timeout_s, letter.is_answered) as held:
                if not held:
                    return letter.answer
                with self._work() as work:
                    if answer := letter.answer_in(work):
                        return answer
                    # Before it could be put once more.
                    letter.withdraw()
                    outcome = admit(work, failure, limits, self)
                    answer_all(self._home, work, lambda other, its: admit(work, other, its, self))
                return outcome
        except LockTimeoutError:
            if answer := letter.answer_or_withdraw():
                return answer
            raise
        finally:
            letter.withdraw()

    @contextmanager
    def _work(self) -> Iterator[Transaction]:
        """The lock is held."""
        if not self._swept:
            sweep(self._path.parent)
            self._swept = True
        before = self._current()
        work = Transaction(before)
        yield work
        try:
            self._journal.append(work.to_journal)
            self._archive.append(self._turns.complete(work.to_archive))
            if work.state is not before:
                self._write(self._turns.move_out(work.state))
            self._turns.remove(work.to_archive)
            self._journal.append(work.to_journal_after)
        except OSError as error:
            self._cache = _FileCache()
            path = Path(error.filename) if error.filename else self._path
            raise storage_error("write", path, error) from error

    def archived(self) -> Iterator[Entry]:
        with reading(self._archive.path):
            yield from self._archive.entries()

    def archived_one(self, intervention_id: str) -> Entry | None:
        with reading(self._archive.path):
            return self._archive.find(intervention_id)

    def archived_resolved(self, names: Iterable[str], limit: int | None = None) -> Iterator[Entry]:
        with reading(self._archive.path):
            yield from self._archive.resolved(names, limit)

    def last_resolved(self, fingerprint: str, excluded: Collection[str] = ()) -> Entry | None:
        try:  # not `reading`, which would cost every put
            return self._archive.last_resolved(fingerprint, excluded)
        except OSError as error:
            raise storage_error("read", self._archive.path, error) from error

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        with reading(self._journal.path):
            yield from self._journal.lines(intervention_id)

    def _current(self) -> QueueState:
        """The state of the file, parsed only as far as it changed. The lock is held."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - in every put
            if self._cache.mark == _mark(found):
                return self._cache.state
            data = self._path.read_bytes()
        except FileNotFoundError:
            self._cache = _FileCache()
            return QueueState()
        except OSError as error:
            raise storage_error("read", self._path, error) from error
        try:
            state, lines = decode(data, self._cache.lines)
        except ValueError as error:
            raise self._move_corrupt_file(error) from error
        self._cache = _FileCache(_mark(found), state, lines)
        return state

    def _write(self, state: QueueState) -> None:
        data, lines = encode(state, self._cache.lines)
        folder = self._path.parent
        # The process id makes left-overs recognisable: the lock's holder may sweep them all.
        temporary = f"{folder}/{TEMPORARY_PREFIX}{os.getpid()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        fd = os.open(temporary, flags, PRIVATE_FILE_MODE)
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
            os.replace(temporary, self._path)  # noqa: PTH105 - a fifth of the cost of Path.replace
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - a text, for the cost of it
            raise
        # Kept open until the next write: an inode that is in use cannot be given to another file,
        # so the same inode, size and time mean the same content.
        self._cache = _FileCache(_mark(os.fstat(fd)), state, lines, fd)
        sync_folder(folder)

    def _move_corrupt_file(self, error: Exception) -> CorruptQueueError:
        stamp = utc_now().strftime("%Y%m%dT%H%M%S_%fZ")
        moved_to = self._path.with_name(f"{CORRUPT_PREFIX}{stamp}.json")
        self._cache = _FileCache()
        try:
            self._path.rename(moved_to)
        except OSError as trouble:
            return CorruptQueueError(
                f"{self._path} does not parse ({error}) and cannot be moved: {trouble.strerror}",
                hint="move it away by hand, then run `interventions doctor`",
            )
        return CorruptQueueError(
            f"{self._path.name} does not parse ({error}); it was moved to {moved_to}",
            hint="run `interventions doctor`: it rebuilds the queue from the logs",
            moved_to=moved_to,
        )


def sweep(folder: Path) -> None:
    """Remove what writers that were killed have left. The lock must be held."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*.tmp"):
        with suppress(OSError):
            path.unlink()


@dataclass
class _FileCache:
    """The file as this process last read or wrote it; `fd` keeps its inode from being reused."""

    mark: tuple[int, int, int, int] | None = None
    state: QueueState = field(default_factory=QueueState)
    lines: Lines = field(default_factory=dict)
    fd: int | None = None

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


def _mark(found: os.stat_result) -> tuple[int, int, int, int]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
