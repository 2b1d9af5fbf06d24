"""Text for a terminal: what comes from outside is neither markup nor a command to it, and the
commands in a hint find the same home."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate, takewhile
from pathlib import Path

_JOINERS = "\u00ad\u200c\u200d"
_EMOJI_JOINED = re.compile(r"([\u2190-\u2bff\U0001f000-\U0001faff])[\u200d\ufe0f]+")
_WORTH_A_LOOK = re.compile(r"[^\t\n\x20-\x7e]")


_NAMES = (
    "list|show|resolve|dismiss|snooze|reopen|undo|assign|retry|similar|history|health|report|drain"
    "|doctor|export|watch|schema"
)
_WORD = r"""(?:"[^"]*"|[^\s;,)]+)"""
# Compiled when it is needed: hardly ever.
_COMMAND = rf"\b(?:interventions (?:{_NAMES})|unified-flow [a-z]+)\b(?: {_WORD})*"


def clean(text: str) -> str:
    """Control characters, escape sequences and bidi overrides shown instead of obeyed.

    As JSON writes them, so that JSON stays the same JSON.
    """
    return _WORTH_A_LOOK.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    kind = unicodedata.category(character)
    # Invisible characters are shown too, but for the joiners, which some scripts need in words.
    hidden = kind == "Cf" and character not in _JOINERS
    if kind in ("Cc", "Cs", "Zl", "Zp") or hidden:
        units = character.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return character


def one_line(text: str) -> str:
    """One line, without what joins emoji: terminals differ in how many columns that takes."""
    return " ".join(_EMOJI_JOINED.sub(r"\1", clean(text)).split())


def first_of(texts: Sequence[str], most: int) -> list[str]:
    """The texts, cut to `most` of them and a last one that counts the others."""
    left = len(texts) - most
    return [*texts[:most], f"and {left} more"] if left > 0 else list(texts)


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
    if width <= 0:
        return ""
    missing = width - cells(text)
    if missing >= 0:
        return text + " " * missing
    kept = sum(1 for _ in takewhile(lambda end: end < width, accumulate(map(cells, text))))
    cut = text[:kept].rstrip() + "…"
    return cut + " " * (width - cells(cut))


def home_flag(home: Path | str | None) -> str:
    """What a command needs to find the same home: ` --home …`, or nothing."""
    if not home:
        return ""
    import shlex  # late: most commands are given no home

    return f" --home {shlex.quote(str(home))}"


def for_home(text: str, home: Path | str | None) -> str:
    """`text` with that home in each command that it names."""
    if not home or "--home" in text or not ("interventions" in text or "unified-flow" in text):
        return text
    flag = home_flag(home)
    return re.sub(_COMMAND, lambda found: found[0] + flag, text)
