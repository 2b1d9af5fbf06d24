"""What the last check for a loss saw: while it is as it was, readers need no index of the logs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from interventions.home import (
    archive_file,
    checked_file,
    error_logs,
    open_private,
    queue_file,
    transitions_file,
)
from interventions.storage.queue_file import QueueState, may_have_more, read_state


def read_checked(home: Path) -> QueueState | None:
    """The queue, if it is known that nothing of it was lost, and all of it is in its file. Raises
    StorageError."""
    seen = look(home)
    if not seen or seen != _noted(home):
        return None
    state = read_state(queue_file(home))
    return None if state is None or any(map(may_have_more, state.entries)) else state


def look(home: Path) -> bytes:
    """All that says what should be in the queue, as it is now; empty if there is no queue file.

    By the time of the last change of each file, which a copy or a new mode changes, too."""
    try:
        rows = [_row(path) for path in (queue_file(home), *error_logs(home))]
        for path in (archive_file(home), transitions_file(home)):
            with suppress(FileNotFoundError):
                rows.append(_row(path))
    except OSError:
        return b""
    return "\n".join(rows).encode("utf-8", "surrogateescape")


def _row(path: Path) -> str:
    found = os.stat(path)  # noqa: PTH116 - of every log, by every command
    return f"{path.name} {found.st_ino} {found.st_size} {found.st_ctime_ns}"


def note_checked(home: Path, seen: bytes) -> None:
    """Of what was seen nothing was lost. Who may not write it checks again."""
    if seen and seen != _noted(home):
        with suppress(OSError):
            fd = open_private(checked_file(home), os.O_WRONLY | os.O_TRUNC)
            with os.fdopen(fd, "wb") as file:
                file.write(seen)


def _noted(home: Path) -> bytes | None:
    try:
        return checked_file(home).read_bytes()
    except OSError:
        return None
