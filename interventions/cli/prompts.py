"""What a person at a terminal is asked: what to do about a call that may have had its effect, and a
text to edit."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from pathlib import Path

from interventions.cli.terminal import UsageError, note
from interventions.plaintext import one_line
from interventions.retry.contract import BegunCall, CallDecision
from interventions.secrets.redaction import redact
from interventions.storage.disk import draft_hint, save_draft

ARGS_SHOWN = 400


def asker() -> Callable[[BegunCall], CallDecision] | None:
    """`ask` for a person at a terminal; None without one."""
    return ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def ask(call: BegunCall) -> CallDecision:
    """What to do about the call. Ctrl-C goes through; the end of input leaves it."""
    args = json.dumps(redact(dict(call.args)), ensure_ascii=False)
    shown = args if len(args) <= ARGS_SHOWN else args[: ARGS_SHOWN - 1] + "…"
    note(f"turn {call.turn_id} called {one_line(call.tool)} with {one_line(shown)}")
    note(
        "it had begun and not finished when the turn stopped: whether it wrote is unknown"
        if call.unfinished
        else "it has written, and would be called again"
    )
    answers: dict[str, CallDecision] = {"r": "again", "l": "leave"}
    choice = "[r]un it again, or [l]eave the turn as it is? "
    if call.unfinished:
        answers |= {"d": "done"}
        choice = "[r]un it again, treat it as [d]one, or [l]eave the turn as it is? "
    while True:
        # What was typed before was typed for something else.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        print(choice, end="", file=sys.stderr, flush=True)
        try:
            answer = input().strip().lower()
        except EOFError:
            note("")
            return "leave"
        if answer in ("r", "run", "l", "leave", "d", "done") and answer[0] in answers:
            return answers[answer[0]]


def edit_text(name: str, text: str) -> str:
    """What the person saved of `text`; `name` is the file's. Raises UsageError.

    The file is in a private folder; what was saved and cannot be read is kept.
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
        raise UsageError(why, hint=draft_hint(save_draft(name, content))) from exc
    if saved == text:
        note("nothing was edited: it goes on with what stood there")
    return saved
