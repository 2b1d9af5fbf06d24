"""What happens below HTTP: connections that say nothing, too many of them, and garbage."""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from tests import forked
from tests.api.service import Service, serving, until
from unified_flow.api.connections import Connections, max_connections
from unified_flow.api.metrics import REFUSALS_LOGGED
from unified_flow.api.server import config_of, listen
from unified_flow.config.tables import ServeSettings

WAIT_S = 240.0
MOST = 30


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("crowded") / "home"
    settings = f'[serve]\nbody_timeout_s = 0.5\nmax_connections = {MOST}\nrate_limit = "off"\n'
    with serving(home, settings=settings) as service:
        yield service


def _connect(service: Service) -> socket.socket:
    url = httpx.URL(service.url)
    return socket.create_connection((url.host, url.port), timeout=WAIT_S)


def _rest(connection: socket.socket) -> bytes:
    """What comes until the other end closes; fails if it does not."""
    parts = []
    with suppress(ConnectionResetError):
        while part := connection.recv(4096):
            parts.append(part)
    return b"".join(parts)


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD], ids=["nothing", "a bit", "no end"])
def test_a_head_that_does_not_come_is_not_waited_for(sent: bytes, crowded: Service) -> None:
    with _connect(crowded) as connection:
        connection.sendall(sent)
        assert _rest(connection) == b""


def test_nor_is_that_of_the_next_request(crowded: Service) -> None:
    with _connect(crowded) as connection:
        connection.sendall(HEAD + b"\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD)
        assert _rest(connection) == b""


def test_an_accepted_socket_sends_at_once() -> None:
    async def accept() -> int:
        accepted: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()

        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(writer.get_extra_info("socket"))
            writer.close()

        listener = listen("127.0.0.1", 0)
        server = await asyncio.start_server(connected, sock=listener)
        with socket.create_connection(listener.getsockname()):
            sends_at_once = (await accepted).getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        server.close()
        return sends_at_once

    assert asyncio.run(accept())


def test_a_server_with_uvloop_beside_it_answers(tmp_path: Path) -> None:
    """It comes with uvicorn[standard], and other programs of the environment may want it."""
    installed = "import sys, types\nsys.modules['uvloop'] = types.ModuleType('uvloop')"
    with serving(tmp_path, before=installed) as service:
        assert service.http.get("/health").status_code == 200


def test_the_server_keeps_a_connection_longer_than_clients_keep_theirs() -> None:
    settings = ServeSettings()
    connections = Connections(most=1, head_s=1.0)
    kept_s = config_of(FastAPI(), connections, settings).timeout_keep_alive
    assert kept_s > max(5, 60, 90)  # httpx; nginx and AWS; Go and hyper: see server.KEEP_ALIVE_S


def test_whoever_asks_gets_in_among_those_who_do_not(crowded: Service) -> None:
    with ExitStack() as stack:
        for _ in range(3 * MOST):
            stack.enter_context(_connect(crowded)).sendall(HEAD)
        for _ in range(3):
            assert httpx.get(f"{crowded.url}/health", timeout=WAIT_S).status_code == 200
    assert "Traceback" not in (crowded.home / "stderr.txt").read_text()


def test_whoever_reads_gets_in_among_those_who_do_not() -> None:
    async def run() -> bytes:
        stuck = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.Event().wait()

        class Talkative(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = transport
                self.address = transport.get_extra_info("peername")

            def data_received(self, data: bytes) -> None:
                scope = {"type": "http", "client": self.address}
                self.request = asyncio.ensure_future(connections.tracked(app)(scope, None, None))
                asyncio.get_running_loop().call_later(0, self.transport.write, bytes(1 << 25))

            def pause_writing(self) -> None:
                stuck.set()

            def connection_lost(self, exc: Exception | None) -> None:
                self.request.cancel()

        connections = Connections(most=1, head_s=WAIT_S)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(connections.around(Talkative), "127.0.0.1", 0)
        place = server.sockets[0].getsockname()
        async with server:
            _, greedy = await asyncio.open_connection(*place)
            greedy.write(b"GET")
            await asyncio.wait_for(stuck.wait(), WAIT_S)
            reader, writer = await asyncio.open_connection(*place)
            writer.write(b"GET")
            got = await asyncio.wait_for(reader.readexactly(100), WAIT_S)
            greedy.close()
            writer.close()
        return got

    assert asyncio.run(run()) == bytes(100)


def test_those_who_have_left_in_the_middle_take_nobodys_place(tmp_path: Path) -> None:
    most = 8
    head = b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    settings = f"[serve]\nbody_timeout_s = 60\nmax_connections = {most}\n"
    with serving(tmp_path / "home", settings=settings) as service, ExitStack() as stack:
        for _ in range(most):
            with _connect(service) as connection:
                connection.sendall(head)
        until(lambda: len(service.log) == most, "they do not end")
        oldest, *_ = [stack.enter_context(_connect(service)) for _ in range(most + 1)]
        assert _rest(oldest) == b""


def test_what_clients_send_is_not_said_on_stderr(crowded: Service) -> None:
    upgrade = b"Connection: upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    for sent in (b"no http\r\n\r\n", HEAD + upgrade):
        with _connect(crowded) as connection:
            connection.sendall(sent)
            assert _rest(connection).startswith(b"HTTP/1.1 ")
    assert (crowded.home / "stderr.txt").read_text() == ""


@pytest.mark.parametrize(
    "sent",
    [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nA B\r\n\r\n"],
    ids=["tls", "no host", "no header"],
)
def test_what_is_no_http_is_refused(sent: bytes, crowded: Service) -> None:
    with _connect(crowded) as connection:
        connection.sendall(sent)
        assert _rest(connection).startswith(b"HTTP/1.1 400 ")


def test_what_is_no_http_after_a_request_is_refused_in_the_same_way(crowded: Service) -> None:
    """It is read once the request before it has its answer."""
    with _connect(crowded) as connection:
        connection.sendall(HEAD + b"\r\n" + b"\x16\x03\x01\x02\x00\r\n\r\n")
        first, found, _ = _rest(connection).partition(b"}HTTP/1.1 400 ")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert found


def test_a_flood_of_one_refusal_hides_no_other(tmp_path: Path) -> None:
    with serving(tmp_path / "home", settings="[serve]\nmax_body_bytes = 1024\n") as service:
        for _ in range(REFUSALS_LOGGED.most + 10):
            assert service.http.get("/nowhere").status_code == 404
        assert service.http.post("/query", content=b" " * 2048).status_code == 413
        statuses = Counter(line["http"]["status"] for line in service.log)
    assert REFUSALS_LOGGED.most <= statuses[404] < REFUSALS_LOGGED.most + 10
    assert statuses[413] == 1


def test_a_body_that_is_broken_has_one_line(crowded: Service) -> None:
    before = len(crowded.log)
    with _connect(crowded) as connection:
        head = b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\nabc")
        assert _rest(connection).startswith(b"HTTP/1.1 400 ")
    assert crowded.http.get("/errors").status_code == 200
    line, _ = crowded.log[before:]
    assert (line["http"]["route"], line["code"]) == ("/query", "VALIDATION_ERROR")


def test_another_path_is_no_redirect_to_a_host_of_the_clients_choice(crowded: Service) -> None:
    answer = crowded.http.get("/health/")
    assert (answer.status_code, answer.json()["code"]) == (404, "VALIDATION_ERROR")


def test_the_descriptors_are_enough_for_the_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = (
        "import resource; from unified_flow.api.connections import max_connections;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 512)); print(max_connections(1000, 50),"
        "resource.getrlimit(resource.RLIMIT_NOFILE)[0], max_connections(20, 50))"
    )
    output = forked.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["248", "512", "20"]
    assert max_connections(8, 1) == 8
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
