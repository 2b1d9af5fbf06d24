"""Whether a folder takes what is written to it: tried, since modes and free inodes tell little.

Also a place for what a person wrote and cannot be used as it is, so that it is not lost.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from interventions.errors import StorageError
from interventions.home import open_private

_BYTES = 64 * 1024
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def obstacle(folder: Path) -> StorageError | None:
    """What keeps it from being written to; None if a file was written there, and removed."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".room_") as file:
            file.write(bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        why = "no space left" if error.errno in _NO_ROOM else error.strerror or error
        todo = remedy(error) or f"chmod u+rwx {folder}"
        return StorageError(f"{folder} cannot be written: {why}", hint=todo)
    return None


def has_no_room(folder: Path) -> bool:
    """Whether its disk is full, without writing to it."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _BYTES


def remedy(error: OSError) -> str:
    """What helps against it, in words; empty for what is not about the disk or its modes."""
    if error.errno in _NO_ROOM:
        return "make room on its disk"
    if error.errno == errno.EROFS:
        return "mount it for writing, or name another home with --home"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "give yourself read and write access, or name another home with --home"
    return ""


def keep_draft(name: str, content: bytes) -> str:
    """Write it where its owner alone can read it; the hint that says so, empty if there is no room
    for it."""
    try:
        path = Path(tempfile.mkdtemp(prefix="kept-")) / name
        with os.fdopen(open_private(path, os.O_WRONLY), "wb") as file:
            file.write(content)
    except OSError:
        return ""
    return f"what you wrote is kept in {path}"
