"""Reading the queue file: without a lock, because it is only ever replaced whole."""

from __future__ import annotations

from pathlib import Path

from interventions.errors import CorruptQueueError, StorageError
from interventions.storage import queue_format
from interventions.storage.state import QueueState


def read_state(path: Path) -> QueueState:
    """The queue as last committed. No lock, no cache; nothing is moved or changed."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return QueueState()
    except OSError as error:
        raise storage_error("read", path, error) from error
    try:
        return queue_format.decode(data)[0]
    except (ValueError, RecursionError) as error:
        raise CorruptQueueError(
            f"{path} does not parse: {error}",
            hint="run `interventions doctor`: it sets the file aside and rebuilds the queue",
        ) from error


def storage_error(verb: str, path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"cannot {verb} {path}: {error.strerror or error}",
        hint="make room or mend the permissions; `interventions doctor` says which",
    )
