"""Asking the person at the terminal whether a tool may run."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import termios
from collections.abc import Mapping
from typing import Any

from interventions.cli.terminal import note
from interventions.plaintext import one_line
from interventions.secrets.redaction import redact
from unified_flow.cli.live import paused
from unified_flow.tools import Tool
from unified_flow.tools.permission_gate import Asker, PermissionReply, describe_access

ARGS_SHOWN = 600
LINE_BYTES = 4096
REPLIES: dict[str, PermissionReply] = {
    "o": "once",
    "once": "once",
    "s": "session",
    "session": "session",
    "a": "always",
    "always": "always",
    "n": "no",
    "no": "no",
    "not": "no",
}


def terminal_asker() -> Asker | None:
    """None where nobody sits at a terminal: then what nobody allowed is refused."""
    return ask if sys.stdin.isatty() and sys.stderr.isatty() else None


async def ask(tool: Tool, args: Mapping[str, Any]) -> PermissionReply:
    """Until exactly one of the four is said: "absolutely not" is no "always". The end of input is
    a no. Ctrl-C goes through."""
    text = json.dumps(redact(dict(args)), ensure_ascii=False)
    shown = text if len(text) <= ARGS_SHOWN else text[: ARGS_SHOWN - 1] + "…"
    with paused():
        touches = describe_access(tool.access)
        note(f"the tool {one_line(tool.name)} {touches}: {one_line(tool.description)}")
        note(f"  it would be called with {one_line(shown)}")
        while True:
            # What was typed before was typed for something else.
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            print(
                "allow it [o]nce, for this [s]ession, [a]lways, or [n]ot? ",
                end="",
                file=sys.stderr,
                flush=True,
            )
            line = await _line()
            if not line:
                note("")
                return "no"
            if (reply := REPLIES.get(line.strip().lower())) is not None:
                return reply
            note("  say once, session, always or no, or its first letter")


async def _line() -> str:
    """A line of the terminal, or "" at its end. Read by the loop itself, so that it can be
    interrupted and nothing goes on reading afterwards."""
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()
    descriptor = sys.stdin.fileno()

    def ready() -> None:
        if not read.done():
            read.set_result(os.read(descriptor, LINE_BYTES))

    loop.add_reader(descriptor, ready)
    try:
        return (await read).decode(errors="replace")
    finally:
        loop.remove_reader(descriptor)
