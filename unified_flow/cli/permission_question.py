"""The question at a terminal whether a tool may run with these arguments."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import termios
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from interventions.cli.terminal import note
from interventions.plaintext import cells, clean, one_line
from interventions.secrets.redaction import WHOLE, redact, redact_text
from unified_flow.cli.live import paused
from unified_flow.lib.text.urls import addresses_of, host_of
from unified_flow.tools import Tool
from unified_flow.tools.permission_gate import Asker, PermissionReply, describe_access

LINE_BYTES = 4096
URL_END = 40
URLS_SHOWN = 3
ROWS_LEFT = 6  # of a screen, for what stands around a page of arguments
REPLIES: dict[str, PermissionReply] = {
    **{"o": "once", "once": "once", "s": "session", "session": "session"},
    **{"a": "always", "always": "always", "n": "no", "no": "no", "not": "no"},
}


def terminal_asker() -> Asker | None:
    """None without a terminal: what was not allowed before is then refused."""
    return ask if sys.stdin.isatty() and sys.stderr.isatty() else None


async def ask(tool: Tool, args: Mapping[str, Any], why: str) -> PermissionReply:
    """Ask until one of the four is answered: "absolutely not" is not "always". The end of input
    is a no; Ctrl-C goes through."""
    size = shutil.get_terminal_size()
    with paused():
        touches = describe_access(tool.access)
        note(f"the tool {one_line(tool.name)} {touches}: {one_line(tool.description)}")
        note(f"  {one_line(why)}; it would be called with")
        shown = list(_lines(redact(dict(args), WHOLE), size.columns))
        for number, line in enumerate(shown):
            if number and number % max(1, size.lines - ROWS_LEFT) == 0:
                left = len(shown) - number
                said = await _said(f"-- {left} more lines: Enter shows them, n refuses --")
                if not said or REPLIES.get(said.strip().lower()) == "no":
                    return "no"
            note(line)
        urls = list(dict.fromkeys(addresses_of(args)))
        for url in urls[:URLS_SHOWN]:
            host = one_line(host_of(url)) or "a host that its address hides"
            note(f"  it goes to {host}, and ends in {one_line(redact_text(url))[-URL_END:]}")
        if len(urls) > URLS_SHOWN:
            note(f"  it goes to {len(urls) - URLS_SHOWN} more addresses, all shown above")
        while True:
            line = await _said("allow it [o]nce, for this [s]ession, [a]lways, or [n]ot? ")
            if not line:
                return "no"
            if (reply := REPLIES.get(line.strip().lower())) is not None:
                return reply
            note("  say once, session, always or no, or its first letter")


def _lines(args: Mapping[str, Any], columns: int) -> Iterator[str]:
    """Every argument whole, its escape sequences shown, in lines that no terminal breaks."""
    for name, value in args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        before = f"    {one_line(name)}: "
        room = max(20, columns - max(cells(before), 8) - 1)
        for line in text.split("\n"):
            for piece in _pieces(clean(line), room):
                yield f"{before}{piece}"
                before = " " * 8


def _pieces(text: str, columns: int) -> list[str]:
    """The text cut into lines of so many columns; a wide character takes two."""
    width = columns if cells(text) == len(text) else columns // 2
    return wrap(text, width, drop_whitespace=False) or [""]


async def _said(question: str) -> str:
    """The line that is typed now, "" at the end of input: what was typed before was typed for
    something else."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    line = await _line()
    if not line:
        note("")
    return line


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
        line = (await read).decode(errors="replace")
        return line if line.endswith("\n") else ""  # the end of input, whatever was typed before
    finally:
        loop.remove_reader(descriptor)
