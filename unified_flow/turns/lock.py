"""The lock of a turn: a `flock` on its journal, which ends with its holder's life."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

# A reader takes the lock for a moment, a runner for long.
TRIES = 5
PAUSE_S = 0.02


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
    if not os.path.samestat(path.stat(), os.fstat(descriptor)):
        raise FileNotFoundError(2, "it was replaced", str(path))


def release(descriptor: int) -> None:
    """Closing is not enough: a child process may hold a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_held(path: Path) -> bool:
    """Whether the turn of this journal runs now. Raises OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        release(descriptor)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
