"""Errors of SQLite and the system about our files, with what to do about them."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from interventions.storage.disk import has_no_room, remedy
from unified_flow.errors import RetrievalError

_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_CLOSED = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")
_FULL = ("SQLITE_FULL",)
_UNREADABLE = ("SQLITE_IOERR",)


@contextmanager
def failures(path: Path, what: str, *, broken: str | Callable[[], str]) -> Iterator[None]:
    """Turns them into a RetrievalError about `what`, such as "The document index"; `broken` is what
    to do if it is the file itself that is at fault; a function is only called then."""
    try:
        yield
    except sqlite3.Error as exc:
        if is_locked(exc):
            raise RetrievalError(
                f"{what} {path} is locked by another process",
                hint="Wait until that process is done with it, then try again.",
            ) from exc
        if _name(exc).startswith(_CLOSED):
            raise _closed(path, what, str(exc)) from exc
        # SQLite says no more than "disk I/O error" where it has no room for its shared memory.
        full = _name(exc).startswith(_UNREADABLE) and has_no_room(path.parent)
        if full or _name(exc).startswith(_FULL):
            raise RetrievalError(
                f"There is no room on the disk for {what[0].lower()}{what[1:]} {path}",
                hint="Free some space, then try again; what it held is untouched.",
            ) from exc
        hint = broken if isinstance(broken, str) else broken()
        raise RetrievalError(f"{what} {path} is broken: {exc}", hint=hint) from exc
    except OSError as exc:
        said = exc.strerror or str(exc)
        if exc.errno == errno.EROFS:  # which no permission mends
            raise _closed(path, what, said, remedy(exc)) from exc
        raise _closed(path, what, said) from exc


def is_locked(exc: BaseException | None) -> bool:
    """Whether another process holds the file."""
    return isinstance(exc, sqlite3.Error) and _name(exc).startswith(_LOCKED)


def is_broken(exc: sqlite3.DatabaseError) -> bool:
    """Whether the file itself is at fault, not the access to it."""
    return not _name(exc).startswith((*_LOCKED, *_CLOSED, *_FULL, *_UNREADABLE))


def _name(exc: sqlite3.Error) -> str:
    """Empty where it is not SQLite that speaks."""
    return getattr(exc, "sqlite_errorname", "")


def _closed(path: Path, what: str, said: str, todo: str = "") -> RetrievalError:
    access = f"Give yourself read and write access to {path.parent} and what is in it."
    return RetrievalError(f"{what} {path} cannot be opened: {said}", hint=todo or access)
