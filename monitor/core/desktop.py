"""The programs at the person's terminal: clipboards and editors."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

_CLIPBOARD_TIMEOUT_S = 2.0
# The best first: the variable of a session that may have it, its name, and the command.
_CLIPBOARDS = (
    ("HOME", "the clipboard", "pbcopy"),  # of macOS alone
    ("WAYLAND_DISPLAY", "the clipboard", "wl-copy"),
    ("DISPLAY", "the clipboard", "xclip -selection clipboard"),
    ("DISPLAY", "the clipboard", "xsel --clipboard --input"),
    ("TMUX", "the tmux buffer (prefix ])", "tmux load-buffer -w -"),
)
_EDITORS_WITH_GOTO = ("code", "codium", "cursor", "windsurf")
_EDITORS_WITH_COLON = ("subl", "hx", "helix", "zed", "micro")


def copy(text: str) -> str:
    """Where the text is now, for certain; "" when no program took it. A terminal, in contrast,
    never answers whether OSC 52 worked."""
    for variable, name, command in _CLIPBOARDS:
        words = command.split()
        if not os.environ.get(variable) or shutil.which(words[0]) is None:
            continue
        try:
            done = subprocess.run(
                words,
                input=text.encode("utf-8", "replace"),
                timeout=_CLIPBOARD_TIMEOUT_S,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return name
    return ""


def source_line(location: str | None) -> tuple[Path, int] | None:
    """`file:line` as the queue has it."""
    file, colon, line = (location or "").rpartition(":")
    sound = colon and file and "\0" not in file and line.isdecimal() and len(line) < 10
    return (Path(file), int(line)) if sound else None


def edit(file: Path, line: int) -> str:
    """Wait until the editor ends; returns what went wrong, or nothing. It never raises: while it
    runs the terminal is the editor's, and must be taken back."""
    # Ctrl-C is the editor's own; a handler, unlike SIG_IGN, is not handed down to it.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        words = editor_command(file, line)
        code = subprocess.run(words, check=False).returncode
    except (OSError, ValueError) as error:
        return f"the editor did not start: {error}"
    finally:
        signal.signal(signal.SIGINT, before)
    return f"{words[0]} ended with code {code}" if code else ""


def editor_command(file: Path, line: int) -> list[str]:
    """$VISUAL, else $EDITOR, else vi."""
    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    words = shlex.split(next(filter(None, named), "vi"))
    name = Path(words[0]).name
    if name in _EDITORS_WITH_GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _EDITORS_WITH_COLON:
        return [*words, f"{file}:{line}"]
    return [*words, f"+{line}", str(file)]
