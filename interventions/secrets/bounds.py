"""How much of a value or a text is let through, and a text redacted within that."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TEXT = 8_000
# Read beyond the cut, so that a secret that lies across it is still recognised.
CUT_MARGIN = 4_000


@dataclass(frozen=True)
class Bounds:
    """How much of a value is let through; what is past a bound is replaced."""

    depth: int = 10
    items: int = 200
    nodes: int = 4000
    text: int = MAX_TEXT
    total_text: int = 64_000


def redact_text(text: str, limit: int = MAX_TEXT) -> str:
    """The text with every secret form replaced, at most about `limit` characters of it."""
    from interventions.secrets.forms import scrub

    clean = scrub(printable(text[: limit + CUT_MARGIN]))
    if len(clean) <= limit and len(text) <= limit + CUT_MARGIN:
        return clean
    cut = clean[:limit]
    return f"{cut}[... {max(len(text) - len(cut), 1)} more characters]"


def printable(text: str) -> str:
    """Lone surrogates and null bytes can be neither written as UTF-8 nor shown."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
