"""A real HTTP server on loopback that speaks chat completions and misbehaves as it is told.

    with ModelServer({"reflection": Reflection(decision="PROCEED", confidence=1.0)}) as server:
        model = OpenAIModel("served", server.url, "test-model")

or the fixture `model_server` of `tests.servers.fixtures`, which starts with an empty script:

    model_server.script = {"planner": [first_plan, cut_body()], "synthesis": status(500)}

A script is a dict by phase (the phase is the name of the request's JSON schema) or a list for
all calls in their order. In a dict, a list is used up in order and anything else answers every
time. An entry is a phase result, its fields as a dict, the reply's text, or one of the
behaviours below: `answer`, `status`, `rate_limited`, `redirect`, `hang`, `trickle`, `cut_body`,
`cut_stream`, `stream`, `empty_choices`, `null_content`, `raw`, `endless`. A call that the script
does not know gets status 500 and a line in `problems`, as does whatever goes wrong in the server.

`requests` holds what came in. With `api_key` set any other key gets 401. `GET /v1/models` lists
`models`, or does what `models_behaviour` says. With `port` it comes back where another one was.
`refused_url()` is an address where nobody listens.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None

    @property
    def phase(self) -> str:
        return str(self.body["response_format"]["json_schema"]["name"])

    @property
    def text(self) -> str:
        """All that the model was told."""
        return "\n".join(message["content"] for message in self.body["messages"])


Behaviour = Callable[["Connection"], None]
Entry = Behaviour | BaseModel | Mapping[str, Any] | str
Script = Mapping[str, Entry | Sequence[Entry]] | Sequence[Entry]


def answer(
    content: BaseModel | Mapping[str, Any] | str,
    finish_reason: str | None = "stop",
    tokens: int = 7,
    **message: Any,
) -> Behaviour:
    return lambda c: c.json(200, _completion(content, finish_reason, message, tokens))


def status(code: int, message: str = "", **headers: str) -> Behaviour:
    """An OpenAI-style error; `retry_after="7"` becomes the header Retry-After."""
    error = {"error": {"message": message or f"status {code}", "type": "test_error"}}
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return lambda c: c.json(code, error, named)


def rate_limited(retry_after_s: int = 7) -> Behaviour:
    return status(429, "rate limit reached", retry_after=str(retry_after_s))


def redirect(url: str) -> Behaviour:
    return status(307, "moved", location=url)


def hang() -> Behaviour:
    """Reads the request and never answers."""
    return lambda c: c.wait_for_the_end()


def trickle(interval_s: float = 0.02, code: int = 200) -> Behaviour:
    """A byte now and then, for ever: no single read is slow."""

    def run(c: Connection) -> None:
        c.head(code, {"Content-Type": "application/json", "Connection": "close"})
        while not c.server.closing.wait(interval_s):
            c.send(b" ")

    return run


def endless(content_type: str = "application/json") -> Behaviour:
    """As much as the client takes, as fast as it takes it."""

    def run(c: Connection) -> None:
        c.head(200, {"Content-Type": content_type, "Connection": "close"})
        while not c.server.closing.is_set():
            c.send(b'{"a": "' + b"x" * 65536)

    return run


def cut_body(
    content: str = '{"decision": "PROCEED"}', announced: bool = True, code: int = 200
) -> Behaviour:
    """Half of a completion, then the connection is closed.

    Not `announced`: without a Content-Length, so that only the JSON shows the cut.
    """

    def run(c: Connection) -> None:
        body = json.dumps(_completion(content, "stop", {})).encode()
        length = {"Content-Length": str(len(body))} if announced else {"Connection": "close"}
        c.head(code, {"Content-Type": "application/json", **length})
        c.send(body[: len(body) // 2])
        c.hang_up()

    return run


def stream(content: str, done: bool = True, held: threading.Event | None = None) -> Behaviour:
    """An event stream, though nobody asked for one; without `done` it has no end. After its first
    part it waits for `held`."""

    def run(c: Connection) -> None:
        c.head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        size = max(1, len(content) // 3)
        for at in range(0, len(content), size):
            delta = {"choices": [{"index": 0, "delta": {"content": content[at : at + size]}}]}
            c.send(b"data: " + json.dumps(delta).encode() + b"\n\n")
            if held is not None:
                held.wait(60)
        if done:
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            c.send(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
        c.hang_up()

    return run


def cut_stream(content: str = '{"decision": "PROCEED"}') -> Behaviour:
    return stream(content, done=False)


def empty_choices() -> Behaviour:
    return lambda c: c.json(200, {"object": "chat.completion", "choices": []})


def null_content(**message: Any) -> Behaviour:
    def run(c: Connection) -> None:
        body = _completion("", "stop", {"content": None, **message})
        c.json(200, body)

    return run


def raw(body: bytes, content_type: str = "text/html", code: int = 200) -> Behaviour:
    def run(c: Connection) -> None:
        c.head(code, {"Content-Type": content_type, "Content-Length": str(len(body))})
        c.send(body)

    return run


def refused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


def _completion(
    content: BaseModel | Mapping[str, Any] | str,
    finish_reason: str | None,
    message: Mapping[str, Any],
    tokens: int = 7,
) -> dict[str, Any]:
    if isinstance(content, BaseModel):
        text = content.model_dump_json()
    else:
        text = content if isinstance(content, str) else json.dumps(content)
    said = {"role": "assistant", "content": text, **message}
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": said, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": 11,
            "completion_tokens": tokens,
            "total_tokens": 11 + tokens,
        },
    }


class ModelServer:
    def __init__(
        self,
        script: Script = (),
        *,
        api_key: str | None = None,
        models: Sequence[str] = (),
        port: int = 0,
    ) -> None:
        self.api_key = api_key
        self.models = list(models) or ["test-model"]
        self.models_behaviour: Behaviour | None = None
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._script: dict[str, Iterator[Entry]] | Iterator[Entry] = iter(())
        self.script = script
        self._http = _Server(self, port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The base URL, as `--base-url` takes it."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def phases(self) -> list[str]:
        """The phases that asked, in order."""
        return [r.phase for r in self.requests if r.method == "POST"]

    @property
    def script(self) -> Script:
        return self._given

    @script.setter
    def script(self, script: Script) -> None:
        """May be set at any time: the next call is answered from the new one."""
        self._given = script
        with self._lock:
            if isinstance(script, Mapping):
                self._script = {phase: _entries(value) for phase, value in script.items()}
            else:
                self._script = iter(script)

    def behaviour(self, request: Request) -> Behaviour:
        with self._lock:
            script = self._script
            entries = script.get(request.phase) if isinstance(script, dict) else script
            entry = next(entries, None) if entries is not None else None
        if entry is None:
            self.problems.append(f"no answer in the script for {request.phase}")
            return status(500, self.problems[-1])
        if isinstance(entry, BaseModel | Mapping | str):
            return answer(entry)
        return entry

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
        """Ends every connection, also the hanging ones. May be called within a test."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._http.shutdown()
        self._http.hang_up_all()
        self._http.server_close()
        self._thread.join()


def _entries(value: Entry | Sequence[Entry]) -> Iterator[Entry]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return iter(value)
    return _forever(value)


def _forever(entry: Entry) -> Iterator[Entry]:
    while True:
        yield entry


@dataclass
class Connection:
    """What a behaviour may do with the one request it has to answer."""

    handler: _Handler
    server: ModelServer
    request: Request
    headers: dict[str, str] = field(default_factory=dict)

    def head(self, code: int, headers: Mapping[str, str]) -> None:
        self.handler.send_response(code)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        if headers.get("Connection") == "close":
            self.handler.close_connection = True

    def send(self, data: bytes) -> None:
        self.handler.wfile.write(data)

    def json(self, code: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        length = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        self.head(code, {**length, **(headers or {})})
        self.send(data)

    def hang_up(self) -> None:
        self.handler.close_connection = True
        self.handler.connection.shutdown(socket.SHUT_RDWR)

    def wait_for_the_end(self) -> None:
        self.handler.close_connection = True
        self.server.closing.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, owner: ModelServer, port: int) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up_all(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was first

    def handle_error(self, request: Any, client_address: Any) -> None:
        exc = sys.exception()
        if not isinstance(exc, ConnectionError):  # the client may leave whenever it likes
            self.owner.problems.append(repr(exc))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits 40 ms for an acknowledgement
    server: _Server

    def do_GET(self) -> None:
        owner = self.server.owner
        request = Request("GET", self.path, dict(self.headers))
        owner.requests.append(request)
        connection = Connection(self, owner, request)
        if not self._refused(connection):
            listed = {"object": "list", "data": [{"id": name} for name in owner.models]}
            behaviour = owner.models_behaviour or (lambda c: c.json(200, listed))
            behaviour(connection)

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Request("POST", self.path, dict(self.headers), body)
        owner.requests.append(request)
        connection = Connection(self, owner, request)
        if self.path.partition("?")[0] != "/v1/chat/completions":
            connection.json(404, {"error": {"message": f"no such path: {self.path}"}})
        elif not self._refused(connection):
            owner.behaviour(request)(connection)

    def _refused(self, connection: Connection) -> bool:
        key = self.server.owner.api_key
        given = self.headers.get("Authorization", "")
        if key is None or given == f"Bearer {key}":
            return False
        # Real servers echo the key they refuse; the client must not pass that on.
        shown = given.removeprefix("Bearer ")
        connection.json(401, {"error": {"message": f"Incorrect API key provided: {shown}."}})
        return True

    def log_message(self, format: str, *args: Any) -> None:
        pass
