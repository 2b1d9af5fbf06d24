from __future__ import annotations

import asyncio
import ssl

import httpx
import pytest

from tests.servers.model_server import ModelServer, refused_url
from tests.unit.models.calls import PROCEED, call
from unified_flow.models import Model
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.servers import client
from unified_flow.servers.client import is_loopback


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
    client.trusted_context.cache_clear()
    ask(model_server.url)
    assert client.trusted_context.cache_info().misses == 0


def test_https_is_verified_and_one_context_serves_the_process(model_server: ModelServer) -> None:
    """The server speaks no TLS, so that all there is to see is that nothing was sent to it."""
    url = model_server.url.replace("http://", "https://")
    for _ in range(2):
        with pytest.raises(httpx.ConnectError, match="SSL"):
            ask(url)
    assert model_server.requests == []
    context = client.trusted_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert client.trusted_context.cache_info().misses == 1


def test_many_calls_at_once_share_the_client(model_server: ModelServer) -> None:
    model_server.script = {"reflection": PROCEED}

    async def run() -> None:
        models = [OpenAIModel(str(n), model_server.url, "m") for n in range(4)]
        replies = await asyncio.gather(*(model.complete(call()) for model in models * 8))
        assert len({reply.text for reply in replies}) == 1
        assert len({id(model._connected()) for model in models}) == 1
        await asyncio.gather(*(model.aclose() for model in models))

    asyncio.run(run())
    assert len(model_server.requests) == 32
