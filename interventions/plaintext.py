"""Text from outside as plain text: neither markup nor commands to a terminal."""

from __future__ import annotations

import unicodedata


def clean(text: str) -> str:
    """Control characters, escape sequences and bidi overrides shown instead of obeyed."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t":
        return character
    kind = unicodedata.category(character)
    overrides = kind == "Cf" and unicodedata.bidirectional(character) != "BN"
    if kind in ("Cc", "Cs", "Zl", "Zp") or overrides:
        return f"\\u{ord(character):04x}"
    return character


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def cells(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def fit(text: str, width: int) -> str:
    """Exactly `width` columns, cut or padded."""
    missing = width - cells(text)
    if missing >= 0:
        return text + " " * missing
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept.append(character)
    cut = "".join(kept) + "…"
    return cut + " " * (width - cells(cut))
