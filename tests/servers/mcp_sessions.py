"""An MCP server of protocol 2025-06-18 over HTTP, which has sessions as most deployed ones do."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

HEADER = "Mcp-Session-Id"


class SessionServer:
    """Its one tool is `say`, which fails with `error` if there is one. A session that is not in
    `sessions` is answered with 404, with a JSON-RPC error if it `says_why`."""

    def __init__(self, *, says: str = "hello", says_why: bool = False) -> None:
        self.says = says
        self.sessions: set[str] = set()
        self.begun = 0
        self.tools = [{"name": "say", "inputSchema": {"type": "object"}}]
        self.error: dict[str, Any] | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                method, id = message.get("method"), message.get("id")
                if method == "initialize":
                    outer.begun += 1
                    outer.sessions.add(f"s{outer.begun}")
                    self.answer(id, INITIALIZED, {HEADER: f"s{outer.begun}"})
                elif HEADER not in self.headers:
                    self.send(400, {"jsonrpc": "2.0", "id": id, "error": NO_SESSION})
                elif self.headers[HEADER] not in outer.sessions:
                    error = {"jsonrpc": "2.0", "id": None, "error": NO_SESSION}
                    self.send(404, error if says_why else None)
                elif id is None:
                    self.send(202, None)
                elif method == "tools/list":
                    self.answer(id, {"tools": outer.tools})
                elif outer.error is not None:
                    self.send(200, {"jsonrpc": "2.0", "id": id, "error": outer.error})
                else:
                    self.answer(id, {"content": [{"type": "text", "text": outer.says}]})

            def do_GET(self) -> None:
                self.send(405, None)

            do_DELETE = do_GET  # noqa: N815 - http.server's name

            def answer(self, id: Any, result: Any, headers: dict[str, str] | None = None) -> None:
                self.send(200, {"jsonrpc": "2.0", "id": id, "result": result}, headers or {})

            def send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(data)
                except ConnectionError:
                    self.close_connection = True  # the client had enough of it

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


NO_SESSION = {"code": -32600, "message": "no such session"}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "sessions", "version": "1"},
}
