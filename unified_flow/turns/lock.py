"""Locks that end with their holder's life: of a turn, on its journal, and of a message."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from interventions.home import make_private_folder, open_private

JOURNAL = "journal.jsonl"
PRUNED = "pruned_"  # and the name of a turn's folder that is being removed
# A reader takes the lock for a moment, a runner for long.
TRIES = 5
PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.1


def take(descriptor: int, path: Path) -> None:
    """Take the lock of the turn whose journal, `path`, is open as `descriptor`.

    Waits for at most 80 ms. Raises BlockingIOError if somebody runs the turn, and
    FileNotFoundError if it was removed between the opening and the lock.
    """
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not left:
                raise
            time.sleep(PAUSE_S)
    if not _lies_at(path, descriptor):
        raise FileNotFoundError(2, "it was replaced", str(path))


def release(descriptor: int) -> None:
    """Closing is not enough: a child process may hold a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_held(path: Path) -> bool:
    """Whether somebody has the lock of this file now. Raises OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        release(descriptor)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@asynccontextmanager
async def sole_user(path: Path) -> AsyncIterator[int]:
    """The descriptor of a private file, which one task of one process has at a time; the others
    wait. It stays only if its user dies or is cancelled. Raises OSError."""
    make_private_folder(path.parent)
    pause_s = PAUSE_S
    while True:
        descriptor = open_private(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _lies_at(path, descriptor):
                break
            os.close(descriptor)  # the one before has removed it
        except BlockingIOError:
            os.close(descriptor)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
    stays = False
    try:
        yield descriptor
    except asyncio.CancelledError:
        stays = True
        raise
    finally:
        if not stays:
            with suppress(OSError):
                path.unlink()
        release(descriptor)
        os.close(descriptor)


def _lies_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one at `path`."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def remove_unused(path: Path, before: float) -> None:
    """Remove what `sole_user` has left, if it was written to before that Unix time. Raises OSError,
    BlockingIOError if somebody uses it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _lies_at(path, descriptor) and os.fstat(descriptor).st_mtime < before:
            path.unlink()
    finally:
        os.close(descriptor)
