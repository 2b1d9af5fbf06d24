"""A text into a file that a person named: private, whole or not at all, over nothing of theirs."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from unified_flow.errors import InputError


def save_text(named: str | Path, text: str, *, force: bool = False, hint: str) -> None:
    """Raises InputError for a file that is there, unless `force` replaces it, and for what can be
    no file; `hint` says what to do about one that is there. OSError for a full disk."""
    try:
        path = Path(named).expanduser().resolve()
        if path.is_dir():
            raise InputError(f"{named} is a folder", hint="name a file in it")
        if not path.parent.is_dir():
            raise InputError(f"{named} cannot be written: {path.parent} is no folder")
        if not force:
            path.touch(mode=0o600, exist_ok=False)  # the name is taken, by nobody else meanwhile
    except FileExistsError as exc:
        raise InputError(f"{named} is there already", hint=hint) from exc
    except (RuntimeError, ValueError) as exc:  # no such user's home, or no name of a file
        raise InputError(f"{str(named)!r} cannot be a file: {exc}") from exc
    try:
        _replace(path, text)
    except BaseException:
        if not force:
            path.unlink(missing_ok=True)
        raise


def _replace(path: Path, text: str) -> None:
    handle, beside = tempfile.mkstemp(prefix=".unified-flow-", dir=path.parent)  # mode 0600
    try:
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(beside).unlink()
        raise
