"""Moderation against a real endpoint, which also fails in every way that it can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.servers.moderation_server import ModerationServer
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError
from unified_flow.guardrails.moderator import (
    Moderated,
    ModerationFailed,
    Moderator,
    moderator_of,
)

KEY = "sk-moderation-0123456789"


@pytest.fixture
def server() -> Iterator[ModerationServer]:
    with ModerationServer({"insult": {"harassment": 0.91, "hate": 0.62}}) as running:
        yield running


def _ask(settings: GuardrailSettings, text: str, **environ: str) -> Moderated | ModerationFailed:
    async def run() -> Moderated | ModerationFailed:
        moderator = moderator_of(settings, environ)
        assert moderator is not None
        try:
            return await moderator.moderate(text, settings.moderation_timeout_s)
        finally:
            await moderator.aclose()

    return asyncio.run(run())


def test_what_is_flagged_is_told_with_its_categories(server: ModerationServer) -> None:
    said = _ask(GuardrailSettings(moderation_url=server.url), "an insult")
    assert said == Moderated(True, {"harassment": 0.91, "hate": 0.62})
    assert list(said.categories) == ["harassment", "hate"]  # the greatest first
    assert _ask(GuardrailSettings(moderation_url=server.url), "a kindness") == Moderated(False)


def test_scores_are_held_within_their_bounds(server: ModerationServer) -> None:
    scores = {"a": 7.5, "b": -1.0, "c": float("nan"), "d": None}
    result = {"flagged": True, "categories": dict.fromkeys(scores, True), "category_scores": scores}
    server.answer = (200, json.dumps({"results": [result]}).encode())
    said = _ask(GuardrailSettings(moderation_url=server.url), "x")
    assert said == Moderated(True, {"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0})


def test_only_its_own_key_is_sent(server: ModerationServer) -> None:
    others = {"OPENAI_API_KEY": "sk-another", "OPENROUTER_API_KEY": "sk-or-another"}
    _ask(GuardrailSettings(moderation_url=server.url), "x", **others)
    named = GuardrailSettings(moderation_url=server.url, moderation_key_env="MODERATION_KEY")
    _ask(named, "x", MODERATION_KEY=KEY, **others)
    assert server.keys == [None, f"Bearer {KEY}"]


def test_a_key_that_was_named_must_be_there(server: ModerationServer) -> None:
    for name in ("MODERATION_KEY", "OPENAI_API_KEY"):
        named = GuardrailSettings(moderation_url=server.url, moderation_key_env=name)
        with pytest.raises(ConfigError, match=name):
            moderator_of(named, {})


def test_the_model_is_named_only_if_the_settings_name_one(server: ModerationServer) -> None:
    _ask(GuardrailSettings(moderation_url=server.url), "x")
    _ask(GuardrailSettings(moderation_url=server.url, moderation_model="omni"), "x")
    assert server.requests == [{"input": "x"}, {"input": "x", "model": "omni"}]


@pytest.mark.parametrize("off", ["false", "0", "NO", " off "])
def test_the_switch_turns_it_off(off: str) -> None:
    settings = GuardrailSettings(moderation_url="http://127.0.0.1:1/v1")
    assert moderator_of(settings, {"OPENAI_MODERATION_ENABLED": off}) is None
    assert moderator_of(settings, {"OPENAI_MODERATION_ENABLED": "true"}) is not None


def test_a_switch_that_says_neither_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="OPENAI_MODERATION_ENABLED"):
        moderator_of(GuardrailSettings(), {"OPENAI_MODERATION_ENABLED": "perhaps"})


def test_nobody_is_asked_unless_an_address_is_set() -> None:
    environ = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    assert moderator_of(GuardrailSettings(), environ) is None


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"{}", "status 500"),
        (401, b'{"error": {"message": "bad key"}}', "status 401"),
        (429, b"{}", "status 429"),
        (200, b"<html>", "answered no JSON"),
        (200, b"{}", "answered what is no moderation"),
        (200, b'{"results": []}', "answered without a result"),
        (200, b'{"results": [{"categories": {}}]}', "answered what is no moderation"),
    ],
)
def test_a_useless_answer_is_a_failure(
    server: ModerationServer, status: int, body: bytes, reason: str
) -> None:
    server.answer = (status, body)
    said = _ask(GuardrailSettings(moderation_url=server.url), "x")
    assert isinstance(said, ModerationFailed)
    assert said.reason.endswith(reason)


def test_an_endpoint_that_is_down_or_slow_is_a_failure(server: ModerationServer) -> None:
    server.hangs_for = ""
    slow = _ask(GuardrailSettings(moderation_url=server.url, moderation_timeout_s=0.1), "x")
    server.close()
    down = _ask(GuardrailSettings(moderation_url=server.url), "x")
    assert isinstance(slow, ModerationFailed)
    assert isinstance(down, ModerationFailed)
    assert (slow.reason, down.reason) == ("no answer in time", "the endpoint cannot be reached")


def test_no_failure_repeats_the_key(server: ModerationServer) -> None:
    server.answer = (401, f'{{"error": "wrong key {KEY}"}}'.encode())
    named = GuardrailSettings(moderation_url=server.url, moderation_key_env="MODERATION_KEY")
    said = _ask(named, "x", MODERATION_KEY=KEY)
    assert isinstance(said, ModerationFailed)
    assert KEY not in f"{said} {said.error!r} {vars(said.error)}"


def test_no_representation_holds_the_key() -> None:
    made = Moderator("http://127.0.0.1:1/v1", api_key=KEY, model=None)
    assert KEY not in repr(made)
