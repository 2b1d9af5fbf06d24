from __future__ import annotations

import asyncio

import pytest

from tests.servers import model_server as serve
from tests.servers.model_server import ModelServer
from unified_flow.models.openai.model import OpenAIModel
from unified_flow.models.openai.probe import Probe, probe


def find(url: str, *, model: str = "test-model", key: str | None = None) -> Probe:
    async def run() -> Probe:
        asked = OpenAIModel("served", url, model, api_key=key)
        try:
            return await probe(asked, timeout_s=0.3)
        finally:
            await asked.aclose()

    return asyncio.run(run())


def test_a_server_with_the_model(model_server: ModelServer) -> None:
    found = find(model_server.url)
    assert (found.finding, found.ok, found.models) == ("ok", True, ("test-model",))


@pytest.mark.parametrize("listed", ["qwen2.5:latest", "models/qwen2.5"])
def test_a_bare_name_is_the_one_that_the_server_means_by_it(listed: str) -> None:
    with ModelServer(models=[listed]) as server:
        assert find(server.url, model="qwen2.5").finding == "ok"
        assert find(server.url, model="qwen2").finding == "model_missing"


def test_a_model_that_the_server_does_not_have(model_server: ModelServer) -> None:
    found = find(model_server.url, model="test-modle")
    assert (found.finding, found.ok) == ("model_missing", False)
    assert found.hint == "It has: test-model."


def test_a_wrong_key_is_told_from_a_right_one() -> None:
    with ModelServer(api_key="right-key") as server:
        found = find(server.url, key="wrong-key-1234")
        assert (found.finding, "wrong-key" in found.message) == ("key_refused", False)
        assert found.hint is not None
        assert find(server.url, key="right-key").ok


def test_nobody_listens() -> None:
    found = find(serve.refused_url())
    assert (found.finding, found.hint) == ("unreachable", "Start the server, or mend the base URL.")


@pytest.mark.parametrize(
    ("behaviour", "finding", "ok"),
    [
        (serve.status(404), "unlisted", True),
        (serve.raw(b'{"data": []}'), "unlisted", True),
        (serve.status(500), "refused", False),
        (serve.status(403), "key_refused", False),
        (serve.hang(), "timeout", False),
        (serve.trickle(), "timeout", False),
        (serve.cut_body(), "unreachable", False),
        (serve.endless(), "no_api", False),
        (serve.raw(b"<html>"), "no_api", False),
        (serve.raw(b"[1]"), "no_api", False),
        (serve.raw(b'{"data": [1, {"id": 2}]}'), "unlisted", True),
    ],
)
def test_what_else_a_server_can_be(
    model_server: ModelServer, behaviour: serve.Behaviour, finding: str, ok: bool
) -> None:
    model_server.models_behaviour = behaviour
    found = find(model_server.url)
    assert (found.finding, found.ok) == (finding, ok)
    assert len(found.message) < 500
