"""Who holds a lock file, as far as the system tells (Linux)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

_POLL_S = 0.01


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
            sleep(_POLL_S)
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
