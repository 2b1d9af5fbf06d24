"""Nothing slips past the guardrails: not as history, and not because something in them broke."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.answers import COMPLETE, DRAFT, every_phase_by_model, script
from tests.servers.model_server import ModelServer
from tests.servers.moderation_server import ModerationServer
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import InputError
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

ASKED = "What is a topic?"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(script(planner=[COMPLETE] * 20)) as server:
        yield server


@pytest.fixture
def rules(home: Path) -> Iterator[GuardrailStore]:
    store = open_store(home, GuardrailSettings())
    store.change("default", lambda own: own.model_copy(update={"flagged_keywords": ("spam",)}))
    yield store
    store.close()


def say(home: Path, model: ModelServer, *messages: str, **more: Any) -> list[Turn]:
    asked = {name: more.pop(name) for name in ("history", "user_id") if name in more}

    async def run() -> list[Turn]:
        options = {"policy": "silent", "model": "test-model", "base_url": model.url} | more
        async with UnifiedFlow(wire(home, **options)) as flow:
            return [await flow.process("s1", text, **asked) for text in messages]

    return asyncio.run(run())


def said_before(*exchanges: tuple[str, str]) -> list[PriorTurn]:
    return [
        PriorTurn(turn_id=number, question=asked, answer=told)
        for number, (asked, told) in enumerate(exchanges, 1)
    ]


@every_phase_by_model
def test_what_would_be_blocked_does_not_come_back_as_history(
    home: Path, model: ModelServer, rules: GuardrailStore
) -> None:
    """A front end sends the whole conversation, with the messages that were met by silence."""
    history = said_before(
        ("Where is my robot?", "In the hall."),
        ("Buy my spam", "ok"),
        ("What a vile insult", "ok"),
        ("Left unanswered", ""),
        ("And before?", "spam it was"),
    )
    with ModerationServer({"insult": {"harassment": 0.9}}) as moderation:
        own = {"moderation_url": moderation.url}
        [turn] = say(home, model, ASKED, guardrails=own, history=history)
        assert not any("spam" in text for text in moderation.texts)
    assert turn.should_respond
    told = "".join(request.text for request in model.requests)
    assert "Where is my robot?" in told
    assert not any(word in told for word in ("spam", "insult", "Left unanswered"))


@pytest.mark.parametrize("user", ["default ", " default"])
def test_a_user_is_the_same_with_space_around_the_name(
    home: Path, model: ModelServer, rules: GuardrailStore, user: str
) -> None:
    [turn] = say(home, model, "spam", user_id=user)
    assert not turn.should_respond


@pytest.mark.parametrize("user", ["default\u200b", "a\n[SILENT FAILURE] b", "a\u2028b"])
def test_a_user_of_unseen_characters_is_refused(
    home: Path, model: ModelServer, rules: GuardrailStore, user: str
) -> None:
    with pytest.raises(InputError):
        say(home, model, "spam", user_id=user)


def test_a_row_that_is_no_json_silences_and_is_recorded(
    home: Path, model: ModelServer, rules: GuardrailStore
) -> None:
    with rules._database.write() as connection:
        connection.execute(sa.text("UPDATE ai_rules SET flagged_keywords = '[oops'"))
    [turn] = say(home, model, ASKED)
    assert not turn.should_respond
    assert model.requests == []
    [row] = rules.decisions(limit=9)
    assert (row.decision, row.matched_rule) == ("ignore", "rules_failed")


@every_phase_by_model
def test_a_reply_is_silenced_though_the_session_cannot_be_written(
    home: Path, model: ModelServer, rules: GuardrailStore
) -> None:
    with ModerationServer() as moderation:
        own = {"moderation_url": moderation.url}
        say(home, model, ASKED, guardrails=own)
        moderation.flags["named bus"] = {"hate": 0.7}
        holder = sqlite3.connect(home / "shared_state" / "sessions.sqlite3")
        holder.execute("PRAGMA journal_mode = DELETE")
        holder.execute("DROP TABLE messages")
        holder.commit()
        holder.close()
        [turn] = say(home, model, "And this?", guardrails=own)
    assert not turn.should_respond
    assert rules.decisions(limit=1)[0].outcome == "post_blocked"


def test_a_guardrail_that_breaks_blocks(
    home: Path, model: ModelServer, rules: GuardrailStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, text: str) -> list[object]:
        raise KeyError(text)

    monkeypatch.setattr("unified_flow.guardrails.matcher.Matcher.matches", broken)
    [turn] = say(home, model, ASKED)
    assert not turn.should_respond
    assert model.requests == []
    [row] = rules.decisions(limit=9)
    assert row.matched_rule == "guardrails_failed"


@every_phase_by_model
def test_an_answer_that_nobody_checked_is_recorded_so(
    home: Path, model: ModelServer, rules: GuardrailStore
) -> None:
    """`fail_open`, and the endpoint goes away between the message and the reply."""
    with ModerationServer() as moderation:
        moderation.fails_for = "named bus"
        own = {"moderation_url": moderation.url, "moderation_failure": "fail_open"}
        [turn] = say(home, model, ASKED, guardrails=own)
    assert turn.response == DRAFT.response
    [row] = rules.decisions(limit=9)
    assert (row.decision, row.confidence) == ("respond", 0.0)
    assert row.matched_rule == "moderation_failed"
