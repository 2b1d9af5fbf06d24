"""One writer at a time among processes and threads, fair, with a time-out.

`filelock` is the lock proper, so that any program that takes the same file with plain `filelock`
is safe. But it polls: a process that has just released it wins it again, and others starve. So our
writers first pass a turnstile, a `flock` whose waiters the kernel wakes in the order in which they
came, and hold it until they are done; only foreign programs then contend for the lock proper.
"""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from weakref import WeakSet

from filelock import FileLock, Timeout

from interventions.errors import LockTimeoutError, StorageError
from interventions.home import PRIVATE_FILE_MODE, make_private_folder, open_private

_POLL_S = 0.002
_WAKING_S = 0.0005
_PROBE_S = 0.01

Hold = Callable[[], AbstractContextManager[None]]


class FairLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._turnstile_path = path.with_suffix(".turnstile")
        self._start()
        _locks.add(self)

    def _start(self) -> None:
        self._threads = threading.Lock()
        self._turnstile: int | None = None
        self._had_to_wait = False
        self._released_at = 0.0
        self._file = FileLock(
            self._path, mode=PRIVATE_FILE_MODE, poll_interval=_POLL_S, thread_local=False
        )

    @contextmanager
    def hold(self, timeout_s: float) -> Iterator[None]:
        """Raises LockTimeoutError, or StorageError when the lock file cannot be made."""
        with self.turn(timeout_s) as hold, hold():
            yield

    @contextmanager
    def turn(
        self, timeout_s: float, before_waiting: Callable[[], None] | None = None
    ) -> Iterator[Hold]:
        """First in line, without the lock proper: nobody else of ours may take that while this
        lasts, and the function that it yields does. `before_waiting` is called if there is a line.
        """
        deadline = monotonic() + timeout_s
        self._yield_to_waiters()
        threads = self._threads
        if not threads.acquire(timeout=max(timeout_s, 0)):
            raise self._timed_out(timeout_s)
        try:
            turnstile = self._pass_turnstile(deadline, timeout_s, before_waiting)
            try:
                yield partial(self._hold_file, deadline, timeout_s)
            finally:
                # Explicitly, because a child forked meanwhile may keep the descriptor open; in that
                # child itself it is closed, and the turn is its parent's.
                if self._turnstile == turnstile:
                    fcntl.flock(turnstile, fcntl.LOCK_UN)
                self._released_at = monotonic()
        finally:
            threads.release()

    def start_again_in_child(self) -> None:
        """After a fork the descriptor is shared with the parent, and so would be its lock."""
        self.close()
        self._start()

    def close(self) -> None:
        if self._turnstile is not None:
            with contextlib.suppress(OSError):
                os.close(self._turnstile)
            self._turnstile = None

    def __del__(self) -> None:
        if getattr(self, "_turnstile", None) is not None:
            self.close()

    def _yield_to_waiters(self) -> None:
        """A waiter needs a moment to wake; one that comes straight back always overtakes it."""
        if self._had_to_wait and monotonic() - self._released_at < _WAKING_S:
            sleep(_WAKING_S)

    @contextmanager
    def _hold_file(self, deadline: float, timeout_s: float) -> Iterator[None]:
        try:
            self._file.acquire(timeout=max(deadline - monotonic(), 0))
        except Timeout as error:
            raise self._timed_out(timeout_s) from error
        except OSError as error:
            raise _cannot_lock(self._path, error) from error
        try:
            yield
        finally:
            self._file.release()

    def _pass_turnstile(
        self, deadline: float, timeout_s: float, before_waiting: Callable[[], None] | None
    ) -> int:
        try:
            turnstile = self._turnstile
            if turnstile is None:
                make_private_folder(self._path.parent)
                turnstile = self._turnstile = open_private(self._turnstile_path, os.O_RDWR)
            try:
                fcntl.flock(turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                self._had_to_wait = False
                return turnstile
            if before_waiting is not None:
                before_waiting()
            waiter = _waiter_for(self._turnstile_path)
        except OSError as error:
            raise _cannot_lock(self._turnstile_path, error) from error
        return self._wait_with(waiter, deadline, timeout_s)

    def _wait_with(self, waiter: _Waiter, deadline: float, timeout_s: float) -> int:
        """A blocking flock has no time-out, so another thread waits and we wait for that thread."""
        self._had_to_wait = True
        try:
            through = waiter.wait(max(deadline - monotonic(), 0))
        except BaseException:
            waiter.give_up()
            raise
        if not through:
            _given_up.setdefault(self._turnstile_path, []).append(waiter)
            raise self._timed_out(timeout_s)
        self.close()
        self._turnstile = waiter.descriptor
        _waiters.discard(waiter)
        return waiter.descriptor

    def _timed_out(self, timeout_s: float) -> LockTimeoutError:
        return LockTimeoutError(
            f"{self._path} was held by somebody else for longer than {timeout_s:g} s",
            hint="find the holder with `interventions doctor`, or raise lock_timeout_s",
        )


class _Waiter:
    """Waits for the turnstile on its own thread; gives it back when it is no longer wanted.

    Bare locks and threads: what `threading` puts around them is a good part of a contended put.
    """

    def __init__(self, path: Path) -> None:
        self.descriptor = open_private(path, os.O_RDWR)
        self._through = _thread.allocate_lock()
        self._through.acquire()
        self._guard = _thread.allocate_lock()
        self._state = "waiting"
        _waiters.add(self)
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError as error:  # no more threads
            self._close()
            raise OSError(str(error)) from error

    def wait(self, timeout_s: float) -> bool:
        if self._through.acquire(timeout=timeout_s):
            return True
        with self._guard:
            if self._state == "waiting":
                self._state = "given up"
            return self._state == "through"

    def give_up(self) -> None:
        """The thread that waited was interrupted."""
        if self.wait(0):
            self._give_back()

    def wait_again(self) -> bool:
        """False when it has given the turnstile back already."""
        with self._guard:
            if self._state == "given up":
                self._state = "waiting"
            return self._state == "waiting"

    def _run(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        with self._guard:
            if self._state == "waiting":
                self._state = "through"
                self._through.release()
                return
            self._state = "gone"
        self._give_back()

    def _give_back(self) -> None:
        # Explicitly, because a child forked meanwhile may keep the descriptor open.
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        self._close()

    def _close(self) -> None:
        _waiters.discard(self)
        os.close(self.descriptor)


_locks: WeakSet[FairLock] = WeakSet()
_waiters: set[_Waiter] = set()
# Their threads cannot be woken; the next writer that waits for the same turnstile takes one over.
_given_up: dict[Path, list[_Waiter]] = {}


def _waiter_for(path: Path) -> _Waiter:
    given_up = _given_up.get(path) or []
    while given_up:
        waiter = given_up.pop()
        if waiter.wait_again():
            return waiter
    return _Waiter(path)


def _after_fork_in_child() -> None:
    """Threads do not live on in a child, but descriptors do, and with them what they lock."""
    for waiter in list(_waiters):
        with contextlib.suppress(OSError):
            os.close(waiter.descriptor)
    _waiters.clear()
    _given_up.clear()
    for lock in list(_locks):
        lock.start_again_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _cannot_lock(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"cannot lock {path}: {error.strerror or error}",
        hint="the folder must be writable; `interventions doctor` says what is wrong",
    )


@contextmanager
def held_if_free(path: Path, timeout_s: float) -> Iterator[bool]:
    """Hold an existing lock file for a moment, making and changing nothing; False: it was busy.

    Raises OSError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        free = _take(fd, monotonic() + timeout_s)
        try:
            yield free
        finally:
            if free:
                fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def _take(fd: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= deadline:
                return False
            sleep(_PROBE_S)
        else:
            return True


def holders(path: Path) -> list[str]:
    """`process 4711 (python3)` for each; empty when it cannot be known."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except OSError:
        return []
    found = []
    for line in locks.splitlines():
        fields = line.split()
        # 1: FLOCK ADVISORY WRITE 4711 08:01:123456 0 EOF; a waiter has "->" in the second field.
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            found.append(_described(fields[4]))
    return [holder for holder in found if not holder.startswith(f"process {os.getpid()} ")]


def _described(pid: str) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        name = "unknown"
    return f"process {pid} ({name})"
