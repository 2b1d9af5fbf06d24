"""What is watched by a person."""

from __future__ import annotations

import sys


def on_terminal() -> bool:
    """A person watches: both streams are terminals."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def beginning(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
