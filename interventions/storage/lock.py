"""One writer at a time among processes and threads, with a time-out.

The lock is the `flock` that `filelock` takes of the same file, so that any program that holds it
with plain `filelock` is safe. A `flock` with a time-out has to be polled, and a process that has
just released it would win it again. So who waits says so, by a shared lock of a second file, and
who comes straight back lets the waiting go first.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from interventions.errors import LockTimeoutError, StorageError
from interventions.home import open_private

_POLL_S = 0.002


class FairLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiters_path = path.with_suffix(".waiters")
        self._released_at = 0.0

    @contextmanager
    def hold(self, timeout_s: float, until: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Yields True with the lock held; or False, without it, as soon as `until` is true, which
        is asked while somebody else holds it. Raises LockTimeoutError, or StorageError when a file
        of the lock cannot be made."""
        try:
            descriptor = self._acquire(monotonic() + timeout_s, until)
        except TimeoutError as error:
            who = ": ".join(["somebody else", *holders(self._path)])
            what = f"{self._path} was held by {who} for longer than {timeout_s:g} s"
            hint = "end that process or wait, or raise lock_timeout_s"
            raise LockTimeoutError(what, hint=hint) from error
        except OSError as error:
            what = f"cannot lock {self._path}: {error.strerror or error}"
            hint = "the folder must be writable; `interventions doctor` says what is wrong"
            raise StorageError(what, hint=hint) from error
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                _release(descriptor)
                self._released_at = monotonic()

    def _acquire(self, deadline: float, until: Callable[[], bool]) -> int | None:
        if monotonic() - self._released_at < _POLL_S and self._somebody_waits():
            sleep(2 * _POLL_S)
        descriptor = _take(self._path, fcntl.LOCK_EX)
        if descriptor is not None:
            return descriptor
        waiting = _take(self._waiters_path, fcntl.LOCK_SH)
        try:
            while not until():
                descriptor = _take(self._path, fcntl.LOCK_EX)
                if descriptor is not None:
                    return descriptor
                if monotonic() >= deadline:
                    raise TimeoutError
                sleep(_POLL_S)
            return None
        finally:
            if waiting is not None:
                _release(waiting)

    def _somebody_waits(self) -> bool:
        descriptor = _take(self._waiters_path, fcntl.LOCK_EX)
        if descriptor is not None:
            _release(descriptor)
        return descriptor is None


def _take(path: Path, kind: int) -> int | None:
    """None if somebody else has it. The file is opened anew each time: so threads exclude each
    other too, and so do those that meet a file that was put in the place of a deleted one."""
    descriptor = open_private(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):  # noqa: PTH116 - in every put
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _release(descriptor: int) -> None:
    # Explicitly, because a child forked meanwhile may keep the descriptor open.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def holders(path: Path) -> list[str]:
    """`process 4711 (python3)` for each; empty when it cannot be known."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except OSError:
        return []
    pids = []
    for line in locks.splitlines():
        fields = line.split()
        # 1: FLOCK ADVISORY WRITE 4711 08:01:123456 0 EOF; a waiter has "->" in the second field.
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            pids.append(fields[4])
    return [f"process {pid} ({_name(pid)})" for pid in pids if pid != str(os.getpid())]


def _name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "unknown"
