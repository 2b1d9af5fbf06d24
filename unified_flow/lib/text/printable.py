"""Paths that are not valid UTF-8, as text that can be printed and stored."""

from __future__ import annotations


def printable(path: str) -> str:
    """The path with what is no text spelt out, so that it can be printed and stored."""
    return path.encode("utf-8", "backslashreplace").decode()
