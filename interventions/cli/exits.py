"""Exit codes, and the one place where the commands catch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from interventions.cli.screen import note
from interventions.errors import (
    ConflictError,
    NoResumerError,
    NotFoundError,
    QueryError,
    QueueError,
    SettingsError,
    StorageError,
)
from interventions.retry.retry_one import StillOpenError


class Code(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    QUEUE = 4
    CONFLICT = 5
    INTERRUPTED = 130


_CODES: tuple[tuple[type[QueueError], Code], ...] = (
    (StillOpenError, Code.FAILED),
    (NotFoundError, Code.NOT_FOUND),
    (ConflictError, Code.CONFLICT),
    (StorageError, Code.QUEUE),
    (QueryError, Code.USAGE),
    (SettingsError, Code.USAGE),
    (NoResumerError, Code.USAGE),
)


class UsageError(QueueError):
    """What was typed cannot be done."""


def code_of(error: QueueError) -> Code:
    return next((code for kind, code in _CODES if isinstance(error, kind)), Code.USAGE)


@contextmanager
def exits() -> Iterator[None]:
    try:
        yield
    except QueueError as error:
        report(error)
        raise typer.Exit(code_of(error)) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(Code.INTERRUPTED) from error
    except BrokenPipeError as error:
        # The reader is gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Code.DONE) from error


def report(error: QueueError) -> None:
    note(f"error: {error}")
    if error.hint:
        note(f"  hint: {error.hint}")
