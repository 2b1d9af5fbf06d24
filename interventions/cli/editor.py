"""A text in the person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from interventions.cli.exits import UsageError


def edit(name: str, text: str) -> str:
    """What the person saved of `text`; `name` is the file's. Raises UsageError.

    The file is in a folder of its own that nobody else may read.
    """
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen is None and not sys.stdin.isatty():
        raise UsageError("--edit needs a terminal, or $EDITOR")
    with tempfile.TemporaryDirectory(prefix="interventions-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(chosen or "vi"), str(path)], check=False)
        except OSError as exc:
            raise UsageError(f"the editor cannot be started: {exc}") from exc
        if done.returncode:
            raise UsageError(f"the editor ended with {done.returncode}; nothing has happened")
        return path.read_text(encoding="utf-8")
