"""Commands inside of notes: they work as they are printed, also for a home that was named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

_NAMES = (
    "list|show|resolve|dismiss|snooze|reopen|undo|assign|retry|similar|history|health|drain"
    "|doctor|export|watch"
)
_WORD = r"""(?:"[^"]*"|[^\s;,)]+)"""
_COMMAND = re.compile(rf"\b(?:interventions (?:{_NAMES})|unified-flow [a-z]+)\b(?: {_WORD})*")


def home_flag(home: Path | str | None) -> str:
    """What a command needs to find the same home: ` --home …`, or nothing."""
    return f" --home {shlex.quote(str(home))}" if home else ""


def for_home(text: str, home: Path | str | None) -> str:
    """`text` with that home in each command that it names."""
    flag = home_flag(home)
    if not flag or "--home" in text:
        return text
    return _COMMAND.sub(lambda found: found[0] + flag, text)
