"""Plain text to a terminal or a pipe: data on stdout, notes on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from interventions.cli.hints import with_home
from interventions.view.plaintext import clean

_COLOURS = {"critical": "31;1", "high": "33", "medium": "36", "dim": "2", "bold": "1", "bad": "31"}


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
    """A line for the person, on stderr; the commands in it find the same home."""
    print(_encodable(clean(with_home(text)), sys.stderr.encoding), file=sys.stderr)


def say(text: str) -> None:
    """Data, on stdout: the one way there, so that no text from outside commands the terminal."""
    say_painted(clean(text))


def say_painted(text: str) -> None:
    """Data with our own colours in it; whatever else is in it must be clean already."""
    sys.stdout.write(_encodable(text, sys.stdout.encoding) + "\n")


def say_json(value: Any, *, lines: bool = False) -> None:
    """One object; or with `lines` one compact object on one line."""
    if lines:
        say(json.dumps(value, ensure_ascii=True, separators=(",", ":")))
    else:
        say(json.dumps(value, ensure_ascii=True, indent=2))
    sys.stdout.flush()


def _encodable(text: str, encoding: str | None) -> str:
    """A terminal that is not UTF-8 gets what it lacks spelled out, not a crash."""
    name = encoding or "utf-8"
    return text.encode(name, "backslashreplace").decode(name)
