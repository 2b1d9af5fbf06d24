"""What can go wrong with the queue itself, one class for each decision a caller makes.

QueueError
├── StorageError          disk full, read-only, permission: the failure is in no queue
│   ├── LockTimeoutError  somebody holds the lock for longer than the time-out
│   ├── JoinedPutError    the put is part of a transaction that fails as a whole
│   └── CorruptQueueError the file does not parse or is gone, or lacks entries
├── NotFoundError
│   └── AmbiguousIdError  `candidates` are the ids that the prefix fits
├── ConflictError         somebody else was first, or the entry is not in that state
│   └── LimitError        reopening or undoing would pass a limit
├── ArgumentError         a value that the queue does not take; `argument` names it (a ValueError)
├── QueryError            a query that cannot be meant
├── SettingsError         a setting that cannot be used
├── NoResumerError        nothing installed can continue a turn
└── UnsolvedError         a retry went on, and the entry stays open
"""

from __future__ import annotations

import sys
from pathlib import Path

_INSTALLERS = {
    "uv-receipt.toml": "uv tool install --force",
    "pipx_metadata.json": "pipx install --force",
}
"""Programs that leave this file in an environment of their own, which has no pip."""


def how_to_install(extra: str) -> str:
    """The command that adds an extra to the installation that runs."""
    for mark, install in _INSTALLERS.items():
        if Path(sys.prefix, mark).exists():
            return f"{install} '.[{extra}]', in the folder that it was installed from"
    return f"pip install 'unified-flow[{extra}]'"


class QueueError(Exception):
    """`str(error)` says what happened; `hint` says what a person can do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class StorageError(QueueError):
    reason = "storage"


class LockTimeoutError(StorageError):
    reason = "lock_timeout"


class JoinedPutError(StorageError):
    """Nothing of the put remains, and nothing is logged: whoever began the transaction begins it
    anew."""


class CorruptQueueError(StorageError):
    reason = "corrupt"


class NotFoundError(QueueError): ...


class AmbiguousIdError(NotFoundError):
    def __init__(self, message: str, *, candidates: list[str], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.candidates = candidates


class ConflictError(QueueError): ...


class LimitError(ConflictError): ...


class ArgumentError(QueueError, ValueError):
    """An argument is wrong; nothing was written."""

    def __init__(self, message: str, *, argument: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.argument = argument


def expect(argument: str, value: object, *kinds: type) -> None:
    """Raises ArgumentError for a value of another type; a truth value is no number."""
    if isinstance(value, kinds) and not isinstance(value, bool):
        return
    wanted = " or ".join(_WORDS.get(kind, kind.__name__) for kind in kinds)
    what = f"{argument} must be {wanted}, not {type(value).__name__}"
    raise ArgumentError(what, argument=argument)


_WORDS = {str: "a text", int: "a whole number", float: "a number", type(None): "None"}


class QueryError(QueueError): ...


class SettingsError(QueueError): ...


class NoResumerError(QueueError): ...


class UnsolvedError(QueueError): ...
