"""An MCP server for tests. `python mcp_server.py` speaks stdio without any library, in the
protocol of most servers: it starts in 30 ms where the official SDK takes 700. `… sdk` is the same
server with the SDK and its newest protocol, `… http PORT` that over HTTP; `… banner` first prints a
line that is none of the protocol, `… stubborn` ignores SIGTERM."""

from __future__ import annotations

import base64
import inspect
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PROTOCOL = "2025-06-18"
SCHEMA_TYPES = {"int": "integer", "float": "number", "str": "string"}
READS = ("add",)
HANGS = "hang"
DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n of a robot").decode()
PICTURE = [
    {"type": "text", "text": "A robot."},
    {"type": "image", "data": DATA, "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": DATA}},
]


def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def note(text: str) -> str:
    """Write a line where NOTES says."""
    with open(os.environ["NOTES"], "a") as file:  # noqa: PTH123
        file.write(text + "\n")
    return f"noted {text}"


def say(text: str) -> str:
    """Repeat it."""
    return text


def flood(characters: int) -> str:
    """Say a lot."""
    return "x" * characters


def refuse(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


def die(code: int) -> str:
    """End the process in the middle of a call, and say so."""
    print(f"the token is {os.environ.get('SERVER_TOKEN')}", file=sys.stderr)
    print("out of cheese", file=sys.stderr, flush=True)
    os._exit(code)


def sleep(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "awake"


def hang() -> str:
    """Answer nobody any more."""
    time.sleep(600)
    return "never"


def grow() -> str:
    """Have one tool more."""
    TOOLS["more"] = say
    announce("notifications/tools/list_changed")
    return "grown"


def draw() -> str:
    """Draw a picture."""
    raise AssertionError("`called` answers it")


def announce(method: str) -> None:
    print(json.dumps({"jsonrpc": "2.0", "method": method}), flush=True)


TOOLS: dict[str, Callable[..., Any]] = {
    tool.__name__: tool for tool in (add, note, say, flood, refuse, die, sleep, hang, grow, draw)
}


def described(name: str) -> dict[str, Any]:
    parameters = inspect.signature(TOOLS[name]).parameters.values()
    properties = {each.name: {"type": SCHEMA_TYPES[each.annotation]} for each in parameters}
    return {
        "name": name,
        "description": TOOLS[name].__doc__,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(properties),
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False} if name in READS else {},
    }


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "draw":
        return {"content": PICTURE, "isError": False}
    try:
        result = TOOLS[name](**arguments)
    except Exception:  # noqa: BLE001 - a tool that fails is an answer
        return {
            "content": [{"type": "text", "text": f"Error executing tool {name}"}],
            "isError": True,
        }
    return {
        "content": [{"type": "text", "text": str(result)}],
        "structuredContent": {"result": result},
        "isError": False,
    }


def serve_stdio() -> None:
    """Calls run in threads, but for the one that hangs."""
    writing = threading.Lock()

    def reply(request: dict[str, Any], **content: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", "id": request["id"], **content})
        with writing:
            print(line, flush=True)

    answered: dict[str, dict[str, Any]] = {}

    def call(request: dict[str, Any]) -> None:
        """What has a key that was answered before is not done again."""
        own = request["params"]
        key = own.get("_meta", {}).get("unified-flow/idempotency-key", "")
        result = answered.get(key) or called(own["name"], own["arguments"])
        if key:
            answered[key] = result
        reply(request, result=result)

    for line in sys.stdin:
        request = json.loads(line)
        match request["method"]:
            case "initialize":
                server = {"name": "test", "version": ""}
                reply(
                    request,
                    result={
                        "protocolVersion": PROTOCOL,
                        "capabilities": {"tools": {"listChanged": True}},
                        "serverInfo": server,
                    },
                )
            case "tools/list":
                reply(request, result={"tools": [described(name) for name in TOOLS]})
            case "tools/call" if request["params"]["name"] == HANGS:
                call(request)
            case "tools/call":
                threading.Thread(target=call, args=(request,)).start()
            case unknown if "id" in request:
                reply(request, error={"code": -32601, "message": f"no method {unknown}"})


def serve_with_sdk(*, port: int | None) -> None:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.types import ToolAnnotations

    async def hang_the_loop() -> str:
        return hang()

    async def grow_and_tell(context: Any) -> str:
        server.add_tool(say, name="more")
        await context.notify_tools_changed()
        return "grown"

    grow_and_tell.__annotations__["context"] = Context
    own: dict[str, Callable[..., Any]] = {HANGS: hang_the_loop, "grow": grow_and_tell}
    server = MCPServer("test")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for name, tool in TOOLS.items():
        server.add_tool(
            own.get(name, tool),
            name=name,
            description=tool.__doc__,
            annotations=reads if name in READS else None,
        )
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", port=port)


if __name__ == "__main__":
    how, *more = [*sys.argv[1:], ""]
    if how == "banner":
        print(f"welcome, {os.environ.get('SERVER_TOKEN')}", flush=True)
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how == "http":
        serve_with_sdk(port=int(more[0]))
    elif how == "sdk":
        serve_with_sdk(port=None)
    else:
        serve_stdio()
