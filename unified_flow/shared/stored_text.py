"""Text as PostgreSQL can hold it."""

from __future__ import annotations


def storable(text: str) -> str:
    """Without null characters and halves of surrogate pairs, which it cannot hold."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
