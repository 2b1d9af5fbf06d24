"""Commands inside of notes: they work as they are printed, also for a home that was named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

_NAMES = (
    "list|show|resolve|dismiss|snooze|reopen|undo|assign|retry|similar|history|health|drain"
    "|doctor|export|watch"
)
_WORD = r"""(?:"[^"]*"|[^\s;,)]+)"""
_COMMAND = re.compile(rf"\b(?:interventions (?:{_NAMES})|unified-flow [a-z]+)\b(?: {_WORD})*")


def home_flag(home: Path | str | None) -> str:
    """What a command needs to find the same home: ` --home …`, or nothing."""
    return f" --home {shlex.quote(str(home))}" if home else ""


def with_home(text: str) -> str:
    """`text` with the home that this command was given, in each command that it names."""
    flag = home_flag(_given_home())
    if not flag or "--home" in text:
        return text
    return _COMMAND.sub(lambda found: found[0] + flag, text)


def _given_home() -> Path | None:
    context = click.get_current_context(silent=True)
    return context.params.get("home") if context is not None else None
