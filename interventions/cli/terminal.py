"""What commands print, data on stdout and notes on stderr, and the code with which they exit."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import typer

from interventions import errors
from interventions.plaintext import clean, first_of, for_home

if TYPE_CHECKING:
    from interventions.entry import MergedFailure

OTHERS_NOTED = 10
_COLOURS = {"critical": "31;1", "high": "33", "medium": "36", "dim": "2", "bold": "1", "bad": "31"}


class Code(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    QUEUE = 4
    CONFLICT = 5
    INTERRUPTED = 130


_CODES: tuple[tuple[type[errors.QueueError], Code], ...] = (
    (errors.UnsolvedError, Code.FAILED),
    (errors.NotFoundError, Code.NOT_FOUND),
    (errors.ConflictError, Code.CONFLICT),
    (errors.StorageError, Code.QUEUE),
)


class UsageError(errors.QueueError):
    """What was typed cannot be done."""


def code_of(error: errors.QueueError) -> Code:
    """USAGE for what the caller can put right: a query, a setting, a missing resumer."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Code.USAGE)


@contextmanager
def exits() -> Iterator[None]:
    try:
        yield
    except errors.QueueError as error:
        report(error)
        raise typer.Exit(code_of(error)) from error
    except BrokenPipeError as error:
        # The reader is gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Code.DONE) from error


def report(error: errors.QueueError) -> None:
    note(f"error: {error}")
    if error.hint:
        note(f"  hint: {error.hint}")


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def coloured() -> bool:
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def paint(text: str, colour: str) -> str:
    """The text cleaned, and in colour where there is colour."""
    text = clean(text)
    code = _COLOURS.get(colour)
    return f"\x1b[{code}m{text}\x1b[0m" if code and coloured() else text


def note(text: str) -> None:
    """A line for the person, on stderr; the commands in it find the home of this command."""
    print(clean(with_home(text)), file=sys.stderr)


def with_home(text: str) -> str:
    """`text` with the home that this command was given in each command that it names."""
    context = click.get_current_context(silent=True)
    return for_home(text, context.params.get("home") if context is not None else None)


def note_others(others: Sequence[MergedFailure]) -> None:
    from interventions.view.groups import other_line

    for line in first_of(list(map(other_line, others)), OTHERS_NOTED):
        note(f"  {line}")


def is_asked() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(what: str) -> None:
    """Raises UsageError unless a person says yes to it; nobody to ask means no."""
    if not is_asked():
        raise UsageError(f"{what}: without a terminal this needs --yes")
    if choose(f"{what}? [y/N]: ", ("yes", "no"), default="no") == "no":
        raise UsageError("nothing was changed")


def choose(question: str, words: Sequence[str], *, default: str | None = None) -> str:
    """The word that a person types, or of which they type the first letter; the last one at the end
    of input. Enter alone is the default, if there is one. Ctrl-C goes through."""
    import termios  # late: most commands ask nothing

    typed = {name: word for word in words for name in (word, word[0])}
    while True:
        # What was typed before was typed for something else.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        print(clean(question), end="", file=sys.stderr, flush=True)
        try:
            answer = input().strip().lower()
        except EOFError:
            note("")
            return words[-1]
        except UnicodeDecodeError:
            continue
        if word := typed.get(answer) or (None if answer else default):
            return word


def say(text: str) -> None:
    """Data, on stdout: the one way there, so that no text from outside commands the terminal."""
    say_painted(clean(text))


def say_to(output: Path | None, text: str) -> None:
    """Write to `output`, which only its owner may read, else to stdout. Raises UsageError."""
    from interventions.export import write_private  # late: most commands write none

    if output is None:
        say(text)
        return
    try:
        write_private(output, text, replace=True)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
    note(f"wrote {output}")


def say_painted(text: str) -> None:
    """Data with our own colours in it; whatever else is in it must be clean already."""
    # A terminal that is not UTF-8 gets what it lacks spelled out, as it does on stderr.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def say_json(value: Any, *, lines: bool = False) -> None:
    """Print the value as indented JSON, or with `lines` compact on one line."""
    if lines:
        say(json.dumps(value, ensure_ascii=True, separators=(",", ":")))
    else:
        say(json.dumps(value, ensure_ascii=True, indent=2))
    sys.stdout.flush()
