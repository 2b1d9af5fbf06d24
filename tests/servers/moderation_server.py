"""A real moderations endpoint on loopback, which flags what it is told to and fails as it is told.

with ModerationServer({"insult": {"harassment": 0.9}}) as server:
    moderator = Moderator(server.url, ...)
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class ModerationServer:
    """`flags`: word in the text -> categories with scores. `answer` replaces the next replies:
    (status, body). `requests` holds the texts, `keys` the Authorization headers."""

    def __init__(self, flags: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self.flags = dict(flags or {})
        self.answer: tuple[int, bytes] | None = None
        self.fails_for: str | None = None  # a text that has this is answered by status 500
        self.hangs_for: str | None = None  # a text that has this is not answered
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        return [request["input"] for request in self.requests]

    def reply(self, text: str) -> tuple[int, bytes]:
        if self.answer is not None:
            return self.answer
        if self.fails_for is not None and self.fails_for in text:
            return 500, b"{}"
        scores: dict[str, float] = {"harassment": 0.01, "hate": 0.01}
        for word, categories in self.flags.items():
            if word in text:
                scores |= categories
        flagged = {category: score >= 0.5 for category, score in scores.items()}
        result = {
            "flagged": any(flagged.values()),
            "categories": flagged,
            "category_scores": scores,
        }
        return 200, json.dumps({"id": "m", "model": "test", "results": [result]}).encode()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nobody listens any more. May be called within a test."""
        if not self.closing.is_set():
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    owner: ModerationServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        owner.requests.append(body)
        owner.keys.append(self.headers.get("Authorization"))
        self.close_connection = True
        if owner.hangs_for is not None and owner.hangs_for in body["input"]:
            owner.closing.wait()
            return
        status, data = owner.reply(body["input"])
        if self.path != "/v1/moderations":
            status, data = 404, b"{}"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass
