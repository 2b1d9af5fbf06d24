"""Waiting for the lock leaves nothing behind: no lock that nobody holds, no thread, no file."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interventions import (
    InterventionQueue,
    InterventionRequest,
    LockTimeoutError,
    StorageError,
)
from interventions.home import lock_file
from interventions.storage import lock as lock_module
from interventions.storage.lock import FairLock


@contextmanager
def held(home: Path) -> Iterator[None]:
    with FairLock(lock_file(home)).hold(5):
        yield


def take(lock: FairLock, timeout_s: float) -> None:
    with lock.hold(timeout_s):
        pass


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def wait_in_child(gate: multiprocessing.synchronize.Event) -> None:
    gate.wait(60)


def test_a_waiter_that_gave_up_and_a_fork_leave_the_lock_free(home: Path) -> None:
    lock = FairLock(lock_file(home))
    context = multiprocessing.get_context("fork")
    gate = context.Event()
    with held(home):
        with pytest.raises(LockTimeoutError):
            take(lock, 0.05)
        child = context.Process(target=wait_in_child, args=(gate,))
        child.start()
    try:
        take(lock, 5)
        take(FairLock(lock_file(home)), 5)
    finally:
        gate.set()
        child.join(60)
    assert child.exitcode == 0


def test_time_outs_leave_no_thread_and_no_file_each(home: Path) -> None:
    kept = FairLock(lock_file(home))
    with held(home):
        with pytest.raises(LockTimeoutError):
            take(kept, 0.01)
        before = threads(), open_files()
        for _ in range(25):
            with pytest.raises(LockTimeoutError):
                take(kept, 0.002)
            with pytest.raises(LockTimeoutError):
                take(FairLock(lock_file(home)), 0.002)
        assert threads() <= before[0] + 1
        assert open_files() <= before[1] + 1
    take(kept, 5)


def test_who_takes_over_a_given_up_waiter_comes_through(home: Path) -> None:
    lock = FairLock(lock_file(home))
    passed = threading.Event()

    def wait_long() -> None:
        take(lock, 20)
        passed.set()

    with held(home):
        for _ in range(3):
            with pytest.raises(LockTimeoutError):
                take(lock, 0.01)
        thread = threading.Thread(target=wait_long)
        thread.start()
    assert passed.wait(20)
    thread.join()
    take(lock, 5)


def test_a_waiter_without_a_descriptor_is_a_storage_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = InterventionQueue(home, lock_timeout_s=1)
    request = InterventionRequest(
        type="error",
        severity="high",
        phase="p",
        error_type="E",
        error_message="x",
        session_id="s",
        turn_id=1,
    )
    queue.put(request)

    def out_of_files(path: Path, flags: int) -> int:
        raise OSError(24, "Too many open files", str(path))

    with held(home):
        monkeypatch.setattr(lock_module, "open_private", out_of_files)
        with pytest.raises(StorageError, match="Too many open files"):
            queue.resolve("x", "y")
        assert queue.put(request).reason == "storage"
