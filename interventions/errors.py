"""What can go wrong with the queue itself, one class for each decision a caller makes.

QueueError
├── StorageError          disk full, read-only, permission: the failure is in no queue
│   ├── LockTimeoutError  somebody holds the lock for longer than the time-out
│   └── CorruptQueueError the file does not parse; `moved_to` says where it is now
├── NotFoundError
│   └── AmbiguousIdError  `candidates` are the ids that the prefix fits
├── ConflictError         somebody else was first, or the entry is not in that state
│   └── LimitError        reopening or undoing would pass a limit
├── QueryError            a query that cannot be meant
├── SettingsError         a setting that cannot be used
└── NoResumerError        nothing installed can continue a turn
"""

from __future__ import annotations

from pathlib import Path


class QueueError(Exception):
    """`str(error)` says what happened; `hint` says what a person can do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class StorageError(QueueError):
    reason = "storage"


class LockTimeoutError(StorageError):
    reason = "lock_timeout"


class CorruptQueueError(StorageError):
    reason = "corrupt"

    def __init__(self, message: str, *, hint: str = "", moved_to: Path | None = None) -> None:
        super().__init__(message, hint=hint)
        self.moved_to = moved_to


class NotFoundError(QueueError):
    pass


class AmbiguousIdError(NotFoundError):
    def __init__(self, message: str, *, candidates: list[str], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.candidates = candidates


class ConflictError(QueueError):
    pass


class LimitError(ConflictError):
    pass


class QueryError(QueueError):
    pass


class SettingsError(QueueError):
    pass


class NoResumerError(QueueError):
    pass
