"""A text in the person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from interventions.cli.exits import UsageError
from interventions.cli.screen import note
from interventions.storage.kept import keep, where


def edit(name: str, text: str) -> str:
    """What the person saved of `text`; `name` is the file's. Raises UsageError.

    The file is in a folder of its own that nobody else may read; what they wrote and cannot be
    read is kept.
    """
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen is None and not sys.stdin.isatty():
        raise UsageError("--edit needs a terminal, or $EDITOR")
    with tempfile.TemporaryDirectory(prefix="interventions-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(chosen or "vi"), str(path)], check=False)
        except (OSError, ValueError) as exc:
            raise UsageError(f"the editor cannot be started: {exc}") from exc
        if done.returncode:
            raise UsageError(f"the editor ended with {done.returncode}; nothing has happened")
        content = path.read_bytes()
    try:
        saved = content.decode("utf-8")
    except UnicodeDecodeError as exc:
        why = "what was saved is not UTF-8; nothing has happened"
        raise UsageError(why, hint=where(keep(name, content))) from exc
    if saved == text:
        note("nothing was edited: it goes on with what stood there")
    return saved
