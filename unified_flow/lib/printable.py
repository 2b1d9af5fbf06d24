"""Any path or value as text that can be printed and stored."""

from __future__ import annotations


def printable(path: str) -> str:
    """The path with what is no text spelt out, so that it can be printed and stored."""
    return path.encode("utf-8", "backslashreplace").decode()


def brief_repr(value: object, most: int) -> str:
    """A value that somebody else wrote, safe for a message: quoted, one line, bounded."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
