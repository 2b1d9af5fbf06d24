"""A real MCP server for tests: `python mcp_server.py` speaks stdio, `… http PORT` HTTP,
`… banner` stdio after a line that is none of the protocol, `… stubborn` stdio and no SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import time

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Write a line where NOTES says."""
    with open(os.environ["NOTES"], "a") as file:  # noqa: PTH123
        file.write(text + "\n")
    return f"noted {text}"


@server.tool()
def say(text: str) -> str:
    """Repeat it."""
    return text


@server.tool()
def flood(characters: int) -> str:
    """Say a lot."""
    return "x" * characters


@server.tool()
def refuse(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@server.tool()
def die(code: int) -> str:
    """End the process in the middle of a call, and say so."""
    print(f"the token is {os.environ.get('SERVER_TOKEN')}", file=sys.stderr)
    print("out of cheese", file=sys.stderr, flush=True)
    os._exit(code)


@server.tool()
def sleep(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "awake"


@server.tool()
async def hang() -> str:
    """Answer nobody any more."""
    time.sleep(600)
    return "never"


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        if sys.argv[1:2] == ["banner"]:
            print(f"welcome, {os.environ.get('SERVER_TOKEN')}", flush=True)
        if sys.argv[1:2] == ["stubborn"]:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        server.run("stdio")
