"""Turns that go on: killed, silenced, blocked, edited."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.answers import DRAFT, open_entries, started_phases
from tests.integration.guardrails.conversing import (
    Waits,
    decided,
    flag,
    flow_at,
    remembered,
    say,
)
from tests.servers.moderation_server import ModerationServer
from unified_flow.engine.turn_run import TurnRun
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.phases.errors import SynthesisError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.turns.sessions import SessionStore
from unified_flow.turns.turn import Turn


def test_a_question_that_is_edited_is_checked_anew(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["spam"])
    with pytest.raises(SynthesisError):
        say(flow_at(home, script={"synthesis": "no json"}), "What is a topic?")

    async def resume() -> Any:
        async with flow_at(home) as flow:
            edited = ResumeRequest(edited={"question": "What is spam?"})
            return await resume_turn(flow, 1, edited)

    assert asyncio.run(resume()).turn.error_message == (
        "GUARDRAIL_PRE_BLOCKED: Flagged keyword detected: 'spam'"
    )


def test_a_turn_that_moderation_silenced_goes_on_once_it_is_back(
    home: Path, moderation: ModerationServer
) -> None:
    moderation.answer = (500, b"{}")
    settings = {"guardrails": {"moderation_url": moderation.url}}
    [turn] = say(flow_at(home, **settings), "What is a topic?")
    assert turn.error_message == "GUARDRAIL_PRE_BLOCKED: Moderation failed: status 500"
    moderation.answer = None

    async def retry() -> Any:
        async with flow_at(home, **settings) as flow:
            named = open_entries(home)[0]["id"]
            return await resume_turn(
                flow, 1, ResumeRequest(intervention_id=named, note="started it")
            )

    done = asyncio.run(retry())
    assert done.turn.response == DRAFT.response
    assert done.closed is not None


@pytest.mark.parametrize("lost", [False, True])
def test_a_turn_whose_save_is_repeated_is_recorded_once(
    home: Path,
    rules: GuardrailStore,
    moderation: ModerationServer,
    monkeypatch: pytest.MonkeyPatch,
    lost: bool,
) -> None:
    """Its answer was let through before the store failed; who did so may have died before that
    was recorded."""
    settings: dict[str, Any] = {"guardrails": {"moderation_url": moderation.url}}

    def full(self: object, turn: Turn) -> None:
        raise RetrievalError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(SessionStore, "save", full)
        [turn] = say(flow_at(home, **settings), "A topic?")
    assert (turn.should_respond, turn.saved) == (True, False)
    if lost:
        with closing(sqlite3.connect(home / "shared_state" / "guardrails.sqlite3")) as database:
            database.execute("DELETE FROM ai_decisions")
            database.commit()

    async def resume() -> Any:
        async with flow_at(home, **settings) as flow:
            return await resume_turn(flow, 1, ResumeRequest())

    assert asyncio.run(resume()).turn.saved
    assert [decision.outcome for decision in decided(rules)] == ["passed"]
    assert len(moderation.texts) == 2


def test_a_reply_that_a_person_has_edited_is_looked_at_anew(
    home: Path, moderation: ModerationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"guardrails": {"moderation_url": moderation.url}}

    def full(self: object, turn: Turn) -> None:
        raise RetrievalError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(SessionStore, "save", full)
        [turn] = say(flow_at(home, **settings), "A topic?")
    assert turn.should_respond
    insult = DRAFT.model_copy(update={"response": "That is an insult."}).model_dump(mode="json")

    async def resume() -> Turn:
        async with flow_at(home, **settings) as flow:
            return (await resume_turn(flow, 1, ResumeRequest(edited={"synthesis": insult}))).turn

    resumed = asyncio.run(resume())
    assert (resumed.status, resumed.response, resumed.saved) == ("silenced", None, False)
    assert remembered(home) == []


def test_a_turn_that_was_silenced_can_go_on_when_the_cause_is_mended(
    home: Path, rules: GuardrailStore
) -> None:
    silent = {"policy": "silent"}
    say(flow_at(home, script={"synthesis": "no json"}, waits=Waits(), **silent), "A topic?")
    assert remembered(home) == []

    async def resume(script: dict[str, Any]) -> Any:
        async with flow_at(home, script=script, waits=Waits(), **silent) as flow:
            return await resume_turn(flow, 1, ResumeRequest())

    still = asyncio.run(resume({"synthesis": "no json"}))
    assert isinstance(still.error, SynthesisError)
    done = asyncio.run(resume({}))
    assert done.turn.response == DRAFT.response
    assert done.turn.should_respond
    assert remembered(home) == ["A topic?"]


def test_a_killed_turn_is_checked_before_it_goes_on(home: Path, rules: GuardrailStore) -> None:
    """The process ends after the turn has begun and before its message was looked at."""
    flow = flow_at(home)

    async def begin() -> None:
        asked = {"session_id": "s1", "request_id": "r1", "user_id": "default"}
        asked |= {"question": "spam?", "channel": None, "persist": True}
        async with await flow._begin(asked, TurnRun(flow.services), None):
            pass

    asyncio.run(begin())
    flag(rules, flagged_keywords=["spam"])

    async def resume() -> Any:
        async with flow:
            return await resume_turn(flow, 1, ResumeRequest())

    done = asyncio.run(resume())
    assert done.turn.status == "silenced"
    assert started_phases(home) == []


def test_a_blocked_turn_can_be_run_under_other_rules(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["topic"])
    say(flow_at(home), "What is a topic?")

    async def resume(**wanted: Any) -> Any:
        async with flow_at(home) as flow:
            return await resume_turn(flow, 1, ResumeRequest(**wanted))

    with pytest.raises(NotResumableError, match="was silenced"):
        asyncio.run(resume())
    still = asyncio.run(resume(from_phase="query_analyzer"))
    assert still.turn.status == "silenced"
    flag(rules, flagged_keywords=[])
    done = asyncio.run(resume(from_phase="query_analyzer"))
    assert done.turn.response == DRAFT.response
    assert remembered(home) == ["What is a topic?"]
