"""The command that opens a source line in the person's editor."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

_GOTO = ("code", "codium", "cursor", "windsurf")
_COLON = ("subl", "hx", "helix", "zed", "micro")


def place(location: str | None) -> tuple[Path, int] | None:
    """`file:line` as the queue has it."""
    file, colon, line = (location or "").rpartition(":")
    return (Path(file), int(line)) if colon and file and line.isdecimal() else None


def command(file: Path, line: int, environment: Mapping[str, str] = os.environ) -> list[str]:
    """$VISUAL, else $EDITOR, else vi."""
    chosen = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    words = shlex.split(chosen)
    name = Path(words[0]).name
    if name in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _COLON:
        return [*words, f"{file}:{line}"]
    return [*words, f"+{line}", str(file)]
