"""The queue as a JSON file, replaced whole and durably under the lock; or, with the setting
`[shared]`, what another program registers in its place.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from interventions import errors
from interventions import home as places
from interventions.entry import Entry, Transition, short_ids
from interventions.settings import Limits, RetentionSettings, SharedSettings, settings_of
from interventions.storage import jsonl, queue_file
from interventions.storage.error_log import log_failures, log_line
from interventions.storage.file_history import FileHistory
from interventions.storage.group_commit import Letter, claim_letters, is_waiting, remove_letters
from interventions.storage.lock import FairLock
from interventions.storage.queue_file import QueueState, storage_error, with_all_turns
from interventions.storage.store import Admit, PutResult, Store, Transaction
from interventions.times import to_text, utc_now

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

CORRUPT_PREFIX = "intervention_queue.corrupt-"
UNUSABLE_PREFIX = "intervention_queue.unusable-"
# Two changes within a tick of the file system's clock look like one.
SETTLED_S = 0.1
RETAINED_EVERY = timedelta(days=1)
STORES_GROUP = "interventions.stores"


def store_at(home: Path) -> Store:
    """What keeps the queue of this home. The queue knows no databases: a Store is registered under
    an entry point group, and called with the home. Raises SettingsError."""
    if not settings_of(home, SharedSettings).database_url_env:
        return FileStore(home)
    for point in _registered_stores():
        try:
            store: Store = point.load()(home)
        except ImportError as error:
            hint = errors.how_to_install("shared")
            raise errors.SettingsError(f"[shared] cannot be used: {error}", hint=hint) from error
        return store
    raise errors.SettingsError(f"[shared] is set, and nothing is registered as {STORES_GROUP!r}")


@cache
def _registered_stores() -> EntryPoints:
    """Looked up once: it reads a file of every installed package."""
    from importlib.metadata import entry_points

    return entry_points(group=STORES_GROUP)


class FileStore(FileHistory):
    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._retained_at = -inf
        self._path = places.queue_file(home)
        self._target = str(self._path)  # where the file lies: a link to it stays one
        self._lock = FairLock(places.lock_file(home))
        self._cache = _FileCache()
        self._read = (b"", QueueState())
        self._swept = False

    def read(self) -> QueueState:
        """The state, as it was read last while no file has changed since: an entry may block
        thousands of turns, and each of them asks when it goes on."""
        seen = queue_file.look(self._home)
        if seen and seen == self._read[0]:
            return self._read[1]
        state = self._read_anew(seen)
        with suppress(OSError):
            if time.time() - self._path.stat().st_ctime > SETTLED_S:
                self._read = seen, state
        return state

    def _read_anew(self, seen: bytes) -> QueueState:
        if (known := queue_file.read_checked(self._home)) is not None:
            return known
        state = queue_file.read_state(self._path)
        if (lost := self._loss(state, seen)) is not None:
            # What was put since the file was read is there now, and what left it is archived.
            state = queue_file.read_state(self._path)
            again = self._loss(state)
            if again is not None and (set(lost) & set(again) or (state is None and not lost)):
                raise self._lost_error(again)
        if state is None:
            return QueueState()
        entries = (with_all_turns(entry, self.turns_by_failure) for entry in state.entries)
        return state._replace(entries=tuple(entries))

    def stamp(self) -> object:
        """By inode too: the queue file is replaced whole, so a watch on the file itself is lost."""
        emergency = places.emergency_log(self._home, utc_now().date())
        return tuple(map(places.mark_of, (self._path, self._archive, emergency)))

    @contextmanager
    def transaction(self, timeout_s: float, *, restoring: bool = False) -> Iterator[Transaction]:
        self._rows("SELECT 1", logs=None)  # indexes what is new before others wait for it
        with self._lock.hold(timeout_s), self._work(restoring=restoring) as work:
            yield work
        if time.monotonic() - self._retained_at > RETAINED_EVERY.total_seconds():
            self._retained_at = time.monotonic()
            # The change is made; `doctor` says what is wrong.
            with suppress(errors.QueueError):
                self._retain(timeout_s)

    def submit(self, failure: Entry, limits: Limits, timeout_s: float, admit: Admit) -> PutResult:
        """A waiting writer leaves a letter; the lock's holder commits all letters in one write."""
        self.knows(failure)  # before others wait for the answer
        letter = Letter(self._home, failure, limits)
        try:
            with self._lock.hold(timeout_s, letter.poll) as held:
                if not held:
                    return letter.answer
                with self._work() as work:
                    waiting = work.state.failures
                    if letter.is_answered(waiting):
                        return letter.answer
                    # Before it could be put once more.
                    letter.withdraw()
                    result = admit(work, failure, limits, self)
                    work.to_log.append(log_line(result))
                    answered = {line.letter for line in waiting}
                    for name, other, its in claim_letters(self._home, answered):
                        work.to_log.append(log_line(admit(work, other, its, self), name))
                return result
        except errors.LockTimeoutError:
            if answer := letter.answer_or_withdraw():
                return answer
            raise
        finally:
            letter.withdraw()

    def _retain(self, timeout_s: float) -> None:
        """Prune once a day, after a person's change: no failing turn waits for it."""
        keep, since = settings_of(self._home, RetentionSettings), utc_now() - RETAINED_EVERY
        is_set = keep.archive_days or keep.archive_entries
        if is_set and not any(line["at"] > to_text(since) for line in self.upkeep("prune")[:1]):
            now, name = to_text(utc_now()), os.urandom(6).hex()
            self.prune(keep, {"transition_id": name, "at": now, "action": "prune"}, timeout_s)

    def prune(self, keep: RetentionSettings, line: Transition, timeout_s: float) -> int:
        """The lock is held only to copy what was archived meanwhile."""
        closed_before = self.closed_before(keep)
        if not (gone := self.archived_count(closed_before)):
            return 0
        fd, temporary = places.open_temporary(self._archive)
        try:
            with os.fdopen(fd, "wb") as new, self._archive.open("rb") as old:
                found = os.fstat(old.fileno())
                new.writelines(kept + b"\n" for kept in self.archived_lines(closed_before))
                with self._lock.hold(timeout_s):
                    if os.path.samestat(found, self._archive.stat()):
                        old.seek(found.st_size)
                        new.write(old.read())
                        _give(fd, os.fstat(fd), found)
                        new.flush()
                        os.fsync(new.fileno())
                        note: Transition = {**line, "closed_before": closed_before}
                        jsonl.append(self._journal, jsonl.encode(note), durable=True)
                        Path(temporary).replace(self._archive)
        except OSError as error:
            raise storage_error("write", self._archive, error) from error
        finally:
            Path(temporary).unlink(missing_ok=True)
        return gone

    @contextmanager
    def _work(self, *, restoring: bool = False) -> Iterator[Transaction]:
        """The lock is held."""
        before = self._finish(self._current(restoring=restoring), again=True)
        if not self._swept:
            places.sweep_temporary(Path(self._target))
            self._swept = True
        work = Transaction(before)
        yield work
        if work.state is before and not (work.to_journal or work.to_archive):
            return
        try:
            archived = places.mark_of(self._archive) if work.to_archive else None
            try:
                whole = (with_all_turns(e, self.turns_by_failure) for e in work.to_archive)
                jsonl.append(self._archive, *map(jsonl.encode, whole), durable=True)
                waiting = (line for line in before.failures if is_waiting(self._home, line))
                state = work.state._replace(
                    transitions=(*before.transitions, *work.to_journal),
                    failures=(*waiting, *work.to_log),
                )
                self._write(state)
            except BaseException:
                if work.to_archive:
                    with suppress(OSError):
                        os.truncate(self._archive, archived[1] if archived else 0)
                raise
            self._finish(state)
        except OSError as error:
            self._cache = _FileCache()
            path = Path(error.filename) if error.filename else self._path
            raise storage_error("write", path, error) from error

    def _finish(self, state: QueueState, *, again: bool = False) -> QueueState:
        """The state without those lines of the last change that are in the journal and in the
        error log now. A change is made when its state is written: a writer that is killed after
        that leaves its lines to the next holder of the lock, which writes the missing ones
        (`again`)."""
        if state.transitions:
            lines = [jsonl.encode(line) for line in state.transitions]
            with suppress(OSError):  # the queue file has them until they are noted
                lines = jsonl.lacking(self._journal, lines) if again else lines
                jsonl.append(self._journal, *lines, durable=True)
                state = state._replace(transitions=())
        if state.failures and log_failures(self._home, state.failures, again=again):
            remove_letters(self._home, state.failures)
            state = state._replace(failures=())
        self._cache.state = state
        return state

    def _current(self, *, restoring: bool) -> QueueState:
        """The state of the file, parsed only as far as it changed. The lock is held."""
        self._target = str(self._path)
        try:
            found = os.lstat(self._path)
            if stat.S_ISLNK(found.st_mode):
                self._target = os.path.realpath(self._path)
                found = os.stat(self._target)  # noqa: PTH116
            if _mark(self._cache.found) == _mark(found) and not restoring:
                self._cache.found = found
                return self._cache.state
            data = queue_file.content(self._path)
        except FileNotFoundError:
            self._cache = _FileCache()
            if not restoring and (lost := self._loss(None)) is not None:
                raise self._lost_error(lost) from None
            return QueueState()
        except OSError as error:
            raise storage_error("read", self._path, error) from error
        try:
            state, lines = queue_file.decode(data, self._cache.lines)
        except ValueError as error:
            self._cache = _FileCache()
            moved = self._move_corrupt_file(error)
            if restoring:
                return QueueState()
            raise moved from error
        if not (state.entries or restoring) and (lost := self._loss(state)) is not None:
            raise self._lost_error(lost)
        if state.unusable and restoring:
            self._set_aside(state)
            state = state._replace(unusable=())
        self._cache = _FileCache(found, state, lines)
        return state

    def _write(self, state: QueueState) -> None:
        data, lines = queue_file.encode(state, self._cache.lines)
        folder = os.path.dirname(self._target)  # noqa: PTH120 - texts, for the cost of a Path
        fd, temporary = places.open_temporary(self._target)
        try:
            if os.writev(fd, data) != sum(map(len, data)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            found = os.fstat(fd)
            if self._cache.found is not None:
                _give(fd, found, self._cache.found)
            else:
                places.give_to_owner(fd, folder)
            os.fsync(fd)
            os.replace(temporary, self._target)  # noqa: PTH105
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise
        # Kept open until the next write: an inode that is in use cannot be given to another file,
        # so the same inode, size and time mean the same content.
        self._cache = _FileCache(found, state, lines, fd)
        places.sync_folder(folder)

    # What was lost

    def _loss(self, state: QueueState | None, seen: bytes = b"") -> list[str] | None:
        """None if nothing was, which is noted of what was `seen` before the state was read; else
        the ids that are known of it."""
        present = {entry["id"] for entry in state.entries} if state else set()
        for row, _ in state.unusable if state else ():
            # It is there, though nobody can read it.
            present.add(str(row.get("id")) if isinstance(row, dict) else "")
        try:
            lost = self.missing(present, closed=not present)
            gone = state is None and (self.knows_any() or self.damaged_files())
        except errors.StorageError:
            # What the logs would say of it is not known; what is there is shown all the same.
            used = self._archive.exists() or self._journal.exists() or self.knows_any(read_on=False)
            if present or not used:
                return None
            raise
        if lost or gone:
            return lost
        queue_file.note_checked(self._home, seen)
        return None

    def _lost_error(self, lost: Sequence[str]) -> errors.CorruptQueueError:
        what = f"acknowledged entries are in no file: {short_ids(lost)}" if lost else ""
        if self._path.exists():
            said = f"GONE: {self._path} lacks entries; {len(lost)} {what}"
        elif aside := self.damaged_files():
            said = f"CORRUPT: {self._path.name} did not parse and was moved to {aside[-1]}"
        else:
            said = f"GONE: {self._path} is not there" + (f"; {len(lost)} {what}" if lost else "")
        return errors.CorruptQueueError(said, hint=queue_file.REBUILD)

    def damaged_files(self) -> list[Path]:
        """Queue files that were moved aside, and that the queue was not rebuilt from."""
        found = sorted(self._path.parent.glob(f"{CORRUPT_PREFIX}*.json"))
        if not found:
            return []
        done = {name for line in self.upkeep("rebuild") for name in line.get("rebuilt_from") or ()}
        return [path for path in found if path.name not in done]

    def _aside(self, prefix: str) -> Path:
        return self._path.with_name(f"{prefix}{utc_now():%Y%m%dT%H%M%S_%fZ}.json")

    def _set_aside(self, state: QueueState) -> None:
        """Keep rows that are no entries in a file: the queue is written without them."""
        rows = [{"what": row, "why": why} for row, why in state.unusable]
        path = self._aside(UNUSABLE_PREFIX)
        try:
            jsonl.append(path, *map(jsonl.encode, rows), durable=True)
        except OSError as error:
            raise storage_error("write", path, error) from error

    def _move_corrupt_file(self, error: Exception) -> errors.CorruptQueueError:
        moved_to, hint = self._aside(CORRUPT_PREFIX), queue_file.REBUILD
        said = f"was moved to {moved_to}"
        try:
            self._path.rename(moved_to)
        except OSError as trouble:
            said, hint = f"cannot be moved: {trouble.strerror}", f"move it by hand, then {hint}"
        what = f"CORRUPT: {self._path.name} does not parse ({error}); it {said}"
        return errors.CorruptQueueError(what, hint=hint)


@dataclass
class _FileCache:
    """The file as this process last read or wrote it; `fd` keeps its inode from being reused."""

    found: os.stat_result | None = None
    state: QueueState = field(default_factory=QueueState)
    lines: queue_file.Lines = field(default_factory=dict)
    fd: int | None = None

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


def _mark(found: os.stat_result | None) -> tuple[int, int, int, int] | None:
    return found and (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _give(fd: int, made: os.stat_result, old: os.stat_result) -> None:
    """The mode and the owner of the file whose place it takes, as far as this user may."""
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
        for user in (old.st_uid, -1):
            with suppress(OSError):
                os.chown(fd, user, old.st_gid)
                break
    if made.st_mode != old.st_mode:
        os.chmod(fd, stat.S_IMODE(old.st_mode))
