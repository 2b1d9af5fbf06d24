from __future__ import annotations

import asyncio

import pytest

from tests.servers import model_server as serve
from tests.servers.model_server import ModelServer
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.models.openai.probe import Probe, probe


def find(
    url: str, *, model: str = "test-model", key: str | None = None, timeout_s: float = 10.0
) -> Probe:
    async def run() -> Probe:
        asked = OpenAIModel("served", url, model, api_key=key)
        try:
            return await probe(asked, timeout_s)
        finally:
            await asked.aclose()

    return asyncio.run(run())


def test_a_server_with_the_model(model_server: ModelServer) -> None:
    found = find(model_server.url)
    assert (found.ok, found.message.endswith(" has test-model")) == (True, True)


@pytest.mark.parametrize("listed", ["qwen2.5:latest", "models/qwen2.5"])
def test_a_bare_name_is_the_one_that_the_server_means_by_it(listed: str) -> None:
    with ModelServer(models=[listed]) as server:
        assert find(server.url, model="qwen2.5").ok
        assert "has no model" in find(server.url, model="qwen2").message


def test_a_model_that_the_server_does_not_have(model_server: ModelServer) -> None:
    found = find(model_server.url, model="test-modle")
    assert (found.ok, "has no model" in found.message) == (False, True)
    assert found.hint == "It has: test-model."


def test_a_wrong_key_is_told_from_a_right_one() -> None:
    with ModelServer(api_key="right-key") as server:
        found = find(server.url, key="wrong-key-1234")
        assert (found.ok, "wrong-key" in found.message, "401" in found.message) == (
            False,
            False,
            True,
        )
        assert found.hint is not None
        assert find(server.url, key="right-key").ok


def test_nobody_listens() -> None:
    found = find(serve.refused_url())
    assert (found.ok, found.hint) == (False, "Start the server, or mend the base URL.")


@pytest.mark.parametrize(
    ("behaviour", "said", "ok"),
    [
        (serve.status(404), "no list of models", True),
        (serve.raw(b'{"data": []}'), "lists no models", True),
        (serve.status(500), "500", False),
        (serve.status(403), "403", False),
        (serve.hang(), "did not answer", False),
        (serve.trickle(), "did not answer", False),
        (serve.cut_body(), "cannot be reached", False),
        (serve.endless(), "more than", False),
        (serve.raw(b"<html>"), "not as an OpenAI-compatible API", False),
        (serve.raw(b"[1]"), "not as an OpenAI-compatible API", False),
        (serve.raw(b'{"data": [1, {"id": 2}]}'), "lists no models", True),
    ],
)
def test_what_else_a_server_can_be(
    model_server: ModelServer, behaviour: serve.Behaviour, said: str, ok: bool
) -> None:
    model_server.models_behaviour = behaviour
    found = find(model_server.url, timeout_s=0.3 if said == "did not answer" else 10.0)
    assert (said in found.message, found.ok) == (True, ok)
    assert len(found.message) < 500
