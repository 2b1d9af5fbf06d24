"""What is watched by a person."""

from __future__ import annotations

import sys

from interventions.plaintext import clean


def on_terminal() -> bool:
    """A person watches: both streams are terminals."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def beginning(text: str, width: int) -> str:
    """`text` as one line of at most `width` characters, its escape sequences shown."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def counted(number: int, what: str) -> str:
    """`1 claim`, `2 claims`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
