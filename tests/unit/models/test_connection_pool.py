from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
import trustme

from tests.servers.model_server import Connection, ModelServer, refused_url
from tests.servers.web_server import WebServer, reply
from tests.unit.models.calls import PROCEED, call
from unified_flow.models import Model
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.servers.client import ServerClient
from unified_flow.servers.connection_pool import (
    SpreadTransport,
    is_loopback,
    new_transport,
    trusted_context,
)

PORTS: set[int] = set()


def ask(url: str) -> None:
    async def run() -> None:
        model: Model = OpenAIModel("served", url, "test-model", api_key="sk-secret-0123456789")
        try:
            await model.complete(call())
        finally:
            await model.aclose()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("a.localhost", True), ("10.0.0.1", False), ("localhost.example.org", False), ("", False)],
)  # fmt: skip
def test_which_hosts_are_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, refused_url().removesuffix("/v1"))
    model_server.script = {"reflection": PROCEED}
    ask(model_server.url)
    assert len(model_server.requests) == 1


def test_a_plain_address_never_loads_certificates(model_server: ModelServer) -> None:
    model_server.script = {"reflection": PROCEED}
    trusted_context.cache_clear()
    ask(model_server.url)
    assert trusted_context.cache_info().misses == 0


def test_https_is_verified_and_one_context_serves_the_process(model_server: ModelServer) -> None:
    """The server speaks no TLS, so that all there is to see is that nothing was sent to it."""
    url = model_server.url.replace("http://", "https://")
    for _ in range(2):
        with pytest.raises(httpx.ConnectError, match="SSL"):
            ask(url)
    assert model_server.requests == []
    context = trusted_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert trusted_context.cache_info().misses == 1


def test_many_calls_at_once_are_answered(model_server: ModelServer) -> None:
    model_server.script = {"reflection": PROCEED}

    async def run() -> None:
        models = [OpenAIModel(str(n), model_server.url, "m") for n in range(4)]
        replies = await asyncio.gather(*(model.complete(call()) for model in models * 8))
        assert len({reply.text for reply in replies}) == 1
        await asyncio.gather(*(model.aclose() for model in models))

    asyncio.run(run())
    assert len(model_server.requests) == 32


def noted(connection: Connection) -> None:
    PORTS.add(connection.handler.client_address[1])
    connection.json(200, {"data": []})


def connections(calls: int, *, at_once: bool) -> int:
    """How many connections that many calls take."""
    PORTS.clear()

    async def run(url: str) -> None:
        async with httpx.AsyncClient(transport=new_transport(url)) as client:

            async def call() -> None:
                (await client.get(f"{url}/models")).raise_for_status()

            if at_once:
                await asyncio.gather(*(call() for _ in range(calls)))
            else:
                for _ in range(calls):
                    await call()

    with ModelServer() as server:
        server.models_behaviour = noted
        asyncio.run(run(server.url))
    return len(PORTS)


def test_calls_one_after_another_share_one_connection() -> None:
    assert connections(10, at_once=False) == 1


def test_a_hundred_and_fifty_calls_at_once_are_answered() -> None:
    assert connections(150, at_once=True) > 1


def test_a_connection_that_broke_is_not_used_again(model_server: ModelServer) -> None:
    def broken(connection: Connection) -> None:
        noted(connection)
        connection.handler.close_connection = True

    PORTS.clear()
    model_server.models_behaviour = broken

    async def run() -> None:
        transport = new_transport(model_server.url)
        assert isinstance(transport, SpreadTransport)
        async with httpx.AsyncClient(transport=transport) as client:
            for _ in range(3):
                (await client.get(f"{model_server.url}/models")).raise_for_status()
                async with asyncio.timeout(30):  # the server breaks it after its answer
                    while not transport._free[-1].has_expired():
                        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert len(PORTS) == 3


@pytest.mark.parametrize("closed", [False, True])
def test_a_call_that_is_cancelled_or_closed_ends(closed: bool) -> None:
    """Neither hangs, nor leaves its connection open."""
    asked, left = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()
        left.set()

    async def run() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = new_transport(url)
        calling = asyncio.ensure_future(
            transport.handle_async_request(httpx.Request("GET", url, content=b""))
        )
        await asked.wait()
        if closed:
            await transport.aclose()
        else:
            calling.cancel()
        with pytest.raises((httpx.TransportError, asyncio.CancelledError)):
            async with asyncio.timeout(30):
                await calling
        async with server, asyncio.timeout(30):
            await left.wait()

    asyncio.run(run())


def test_a_reply_that_is_compressed_without_being_asked_to_is_read(
    model_server: ModelServer,
) -> None:
    def compressed(connection: Connection) -> None:
        body = gzip.compress(b'{"data": []}')
        length = str(len(body))
        connection.head(200, {"Content-Encoding": "gzip", "Content-Length": length})
        connection.send(body)

    model_server.models_behaviour = compressed

    async def run() -> bytes:
        server = ServerClient(model_server.url, "test-model")
        try:
            return (await server.request("GET", "models", 30.0))[1]
        finally:
            await server.aclose()

    assert asyncio.run(run()) == b'{"data": []}'


def test_https_is_spoken_with_the_name_of_the_address() -> None:
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def body(url: str) -> bytes:
        transport = SpreadTransport(httpx.URL(url), trusting)
        async with httpx.AsyncClient(transport=transport) as client:
            return (await client.get(url)).content

    with WebServer({"/": reply("by TLS")}, tls=served) as server:
        assert asyncio.run(body(server.url(host="localhost"))) == b"by TLS"
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            asyncio.run(body(server.url()))


@asynccontextmanager
async def answering(answer: bytes, *, closes: bool) -> AsyncIterator[str]:
    """The address of a server that answers the head of the first request of each connection."""
    talks: set[asyncio.Task[None] | None] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not closes:
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*filter(None, talks))


def test_a_refusal_that_comes_before_the_whole_request_is_sent() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

    async def run() -> int:
        async with (
            answering(refusal, closes=True) as url,
            httpx.AsyncClient(transport=new_transport(url)) as client,
        ):
            return (await client.post(url, content=b"x" * 300_000)).status_code

    assert asyncio.run(run()) == 413


def test_a_request_that_was_not_sent_whole_holds_up_no_other() -> None:
    """The server refuses it, keeps the connection open, and reads no more of it."""
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"

    async def run() -> list[int]:
        async with (
            answering(refusal, closes=False) as url,
            httpx.AsyncClient(transport=new_transport(url)) as client,
        ):
            async with asyncio.timeout(30):
                return [
                    (await client.post(url, content=b"x" * size)).status_code
                    for size in (30_000_000, 1)
                ]

    assert asyncio.run(run()) == [413, 413]


def test_what_is_closed_connects_no_more() -> None:
    async def run() -> None:
        async with await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = new_transport(url)
            request = httpx.Request("GET", url)
            calling = asyncio.ensure_future(transport.handle_async_request(request))
            await asyncio.sleep(0)
            await transport.aclose()
            with pytest.raises(httpx.ConnectError, match="closed"):
                await calling

    asyncio.run(run())


def test_an_interim_response_is_no_answer() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n"
    answer = hint + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    async def run() -> bytes:
        async with (
            answering(answer, closes=False) as url,
            httpx.AsyncClient(transport=new_transport(url)) as client,
        ):
            return (await client.get(url)).content

    assert asyncio.run(run()) == b"ok"


def test_what_a_server_sends_unasked_is_no_answer() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"

    async def run() -> list[bytes]:
        async with (
            answering(answer + b"ok" + answer + b"no", closes=False) as url,
            httpx.AsyncClient(transport=new_transport(url)) as client,
        ):
            return [(await client.get(url)).content for _ in range(3)]

    assert asyncio.run(run()) == [b"ok"] * 3
