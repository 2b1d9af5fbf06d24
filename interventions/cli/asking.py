"""Asking about a call that may have had its effect: run it again, count it as done, or leave it."""

from __future__ import annotations

import json
import sys
import termios
from collections.abc import Callable

from interventions.cli.screen import note
from interventions.retry.contract import BegunCall, Settled
from interventions.secrets.redaction import redact
from interventions.view.plaintext import one_line

ARGS_SHOWN = 400


def asker() -> Callable[[BegunCall], Settled] | None:
    """`ask` for a person at a terminal; None where nobody can be asked."""
    return ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def ask(call: BegunCall) -> Settled:
    """What is to be done about the call. Ctrl-C goes through; the end of input leaves it."""
    args = json.dumps(redact(dict(call.args)), ensure_ascii=False)
    shown = args if len(args) <= ARGS_SHOWN else args[: ARGS_SHOWN - 1] + "…"
    note(f"turn {call.turn_id} called {one_line(call.tool)} with {one_line(shown)}")
    note(
        "it had begun and not finished when the turn stopped: whether it wrote is unknown"
        if call.unfinished
        else "it has written, and would be called again"
    )
    answers: dict[str, Settled] = {"r": "again", "run": "again", "l": "leave", "leave": "leave"}
    choice = "[r]un it again, or [l]eave the turn as it is? "
    if call.unfinished:
        answers |= {"d": "done", "done": "done"}
        choice = "[r]un it again, treat it as [d]one, or [l]eave the turn as it is? "
    while True:
        # What was typed before was typed for something else.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        print(choice, end="", file=sys.stderr, flush=True)
        try:
            said = input().strip().lower()
        except EOFError:
            note("")
            return "leave"
        if said in answers:
            return answers[said]
