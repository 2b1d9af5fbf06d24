"""The command that opens a source line in the person's editor."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

_GOTO = ("code", "codium", "cursor", "windsurf")
_COLON = ("subl", "hx", "helix", "zed", "micro")


def place(location: str | None) -> tuple[Path, int] | None:
    """`file:line` as the queue has it."""
    file, colon, line = (location or "").rpartition(":")
    sound = colon and file and "\0" not in file and line.isdecimal() and len(line) < 10
    return (Path(file), int(line)) if sound else None


def edit(file: Path, line: int) -> str:
    """Wait until the editor ends; what went wrong, or nothing. It never raises: where it is called
    the terminal is the editor's, and must be taken back."""
    # Ctrl-C is the editor's own; a handler, unlike SIG_IGN, is not handed down to it.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        words = command(file, line)
        code = subprocess.run(words, check=False).returncode
    except (OSError, ValueError) as error:
        return f"the editor did not start: {error}"
    finally:
        signal.signal(signal.SIGINT, before)
    return f"{words[0]} ended with code {code}" if code else ""


def command(file: Path, line: int, environment: Mapping[str, str] = os.environ) -> list[str]:
    """$VISUAL, else $EDITOR, else vi."""
    named = (environment.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    words = shlex.split(next(filter(None, named), "vi"))
    name = Path(words[0]).name
    if name in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _COLON:
        return [*words, f"{file}:{line}"]
    return [*words, f"+{line}", str(file)]
