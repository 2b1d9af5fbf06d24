"""What is watched by a person."""

from __future__ import annotations

import re
import sys
import textwrap

from interventions.cli.terminal import width
from interventions.plaintext import clean

_ITEM = re.compile(r" *(?:\d+\.|[-*]) +| +")


def on_terminal() -> bool:
    """A person watches: both streams are terminals."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def beginning(text: str, width: int) -> str:
    """`text` as one line of at most `width` characters, its escape sequences shown."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def wrapped(text: str) -> str:
    """For a person, its long lines broken between words; the items of a list stay in line. What
    is indented is code, and stays as it is."""
    if not on_terminal():
        return text
    return "\n".join(_broken(line) for line in text.split("\n"))


def _broken(line: str) -> str:
    if len(line) < width() or line.startswith("    "):
        return line
    item = _ITEM.match(line)
    rest = " " * len(item[0]) if item else ""
    pieces = textwrap.wrap(
        line, width() - 1, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(pieces)


def counted(number: int, what: str) -> str:
    """`1 claim`, `2 claims`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
