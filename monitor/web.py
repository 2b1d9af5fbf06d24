"""The monitor in a browser: textual-serve on loopback, behind a token.

The token is in the page's address and in the path of its websocket. Requests that name another
host (a page elsewhere whose name was pointed at this machine) or come from another origin are
refused, and the page may load nothing from anywhere else."""

from __future__ import annotations

import re
import secrets
import shlex
import socket
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from string import Template

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

HOST = "127.0.0.1"
_ID = re.compile(r"\w{1,64}", re.ASCII)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class MonitorServer(Server):
    """One process of the monitor for each page that is open."""

    def __init__(self, command: str, port: int, token: str) -> None:
        super().__init__(command, HOST, port, title="monitor")
        self.token = token
        self._page = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))

    @property
    def address(self) -> str:
        return f"{self.public_url}/?token={self.token}"

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded()])
        app.router.add_get("/", self.handle_index)
        app.router.add_get("/ws/{token}", self.handle_websocket)
        app.router.add_get("/ws/{token}/{id}", self.handle_websocket)
        app.router.add_get("/static/monitor/page.js", _script)
        app.router.add_static("/static", self.statics_path)
        return app

    def _guarded(self) -> Middleware:
        own = {f"{HOST}:{self.port}", f"localhost:{self.port}"}
        origins = {f"http://{name}" for name in own}

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            origin = request.headers.get("Origin")
            if request.host not in own or (origin is not None and origin not in origins):
                return _refused("this server answers only to itself")
            if not request.path.startswith("/static/"):
                given = request.match_info.get("token") or request.query.get("token", "")
                if not secrets.compare_digest(given.encode(), self.token.encode()):
                    return _refused("the address is not whole: it ends with ?token=...")
            try:
                response = await handler(request)
            except web.HTTPException as refusal:
                refusal.headers.update(_HEADERS)
                raise
            if not response.prepared:
                response.headers.update(_HEADERS)
            return response

        return guard

    async def handle_index(self, request: web.Request) -> web.Response:
        # The page may have been asked for as localhost or as 127.0.0.1; its socket goes there too.
        address = f"ws://{request.host}/ws/{self.token}"
        if wanted := request.query.get("id"):
            if not _ID.fullmatch(wanted):
                return _refused("an id has letters, digits and _ alone")
            address += f"/{wanted}"
        return web.Response(text=self._page.substitute(websocket=address), content_type="text/html")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A process for this page: `command` is the server's, so each has a server of its own."""
        wanted, own = request.match_info.get("id", ""), copy(self)
        if _ID.fullmatch(wanted):
            own.command += f" --id {wanted}"
        return await super(MonitorServer, own).handle_websocket(request)


def serve(arguments: Sequence[str], port: int) -> None:
    """Serve `monitor ARGUMENTS` until interrupted. With port 0 a free one is taken.

    Raises OSError when the port is taken.
    """
    with socket.create_server((HOST, port)) as listener:
        command = shlex.join([sys.executable, "-m", "monitor", *arguments])
        server = MonitorServer(command, listener.getsockname()[1], secrets.token_urlsafe(24))
        print(server.address, flush=True)
        print("ctrl+c ends it; anybody with this address can triage", file=sys.stderr)
        # A page that is open would otherwise be waited for.
        web.run_app(server._make_app(), sock=listener, print=None, shutdown_timeout=1)


async def _script(request: web.Request) -> web.FileResponse:
    return web.FileResponse(Path(__file__).parent / "page.js")


def _refused(why: str) -> web.Response:
    return web.Response(status=403, text=f"refused: {why}\n", headers=_HEADERS)
