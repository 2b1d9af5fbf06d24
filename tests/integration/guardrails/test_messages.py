"""Messages that are blocked, or that nobody has asked to be answered: rules, scope, moderation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.answers import DRAFT, open_entries, started_phases
from tests.integration.guardrails.conversing import (
    decided,
    flag,
    flow_at,
    lines,
    on_both,
    remembered,
    say,
)
from tests.servers.moderation_server import ModerationServer
from unified_flow.errors import InputError
from unified_flow.guardrails.store import GuardrailStore


@on_both
def test_a_clean_exchange_is_answered_and_recorded(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["spam"])
    [turn] = say(flow_at(home), "What is a topic?")
    assert turn.response == DRAFT.response
    assert turn.should_respond
    assert turn.guardrail_pre_result == {"decision": "pass", "reason": "", "confidence": 1.0}
    [decision] = decided(rules)
    assert (decision.decision, decision.outcome) == ("respond", "passed")
    assert remembered(home) == ["What is a topic?"]


@pytest.mark.parametrize("policy", ["fail_fast", "graceful", "silent"])
def test_a_blocked_message_meets_silence_under_every_policy(
    home: Path, rules: GuardrailStore, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    flag(rules, flagged_keywords=["spam"])
    [turn] = say(flow_at(home, policy=policy), "Want some s p a m?", user_id="default")
    assert not turn.should_respond
    assert turn.response is None
    assert turn.status == "silenced"
    assert turn.error_message == "GUARDRAIL_PRE_BLOCKED: Flagged keyword detected: 'spam'"
    assert turn.guardrail_pre_result == {
        "decision": "block",
        "reason": "Flagged keyword detected: 'spam'",
        "confidence": 0.9,
    }
    assert turn.counters.model_calls == 0
    assert started_phases(home) == []
    [decision] = decided(rules)
    assert (decision.decision, decision.matched_rule) == ("ignore", "flagged_keyword:spam")
    assert decision.message_text == "Want some s p a m?"
    assert lines(caplog) == [
        "[GUARDRAILS PRE] Message flagged and blocked: Flagged keyword detected: 'spam'",
        "[SILENT FAILURE] Pre-guardrail blocked message for user default",
    ]
    assert open_entries(home) == []
    assert remembered(home) == []


def test_process_request_says_nothing_and_why(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_phrases=["buy now"])

    async def run() -> dict[str, Any]:
        async with flow_at(home) as flow:
            return await flow.process_request("s1", "Buy now!")

    answer = asyncio.run(run())
    assert (answer["response"], answer["error"], answer["should_respond"]) == ("", False, False)
    assert answer["error_message"] == "GUARDRAIL_PRE_BLOCKED: Flagged phrase detected: 'buy now'"
    assert answer["retry_count"] == 0


def test_each_user_has_rules_of_their_own(home: Path, rules: GuardrailStore) -> None:
    flag(rules, "ada", flagged_keywords=["spam"])
    flag(rules, "bob", flagged_keywords=["topic"])
    asked = "Is spam a topic?"
    by = {user: say(flow_at(home), asked, user_id=user)[0] for user in ("ada", "bob", "eve")}
    assert [turn.should_respond for turn in by.values()] == [False, False, True]
    assert by["bob"].error_message == "GUARDRAIL_PRE_BLOCKED: Flagged keyword detected: 'topic'"
    assert by["eve"].guardrail_pre_result is None


@pytest.mark.parametrize(
    ("off", "channel", "answers"),
    [
        ("ai_enabled_for_comments", "comment", False),
        ("ai_enabled_for_comments", "chat", True),
        ("ai_enabled_for_chats", "chat", False),
        ("ai_control_enabled", None, False),
        ("ai_enabled_for_chats", None, True),
    ],
)
def test_what_is_off_is_silent_and_recorded(
    home: Path, rules: GuardrailStore, off: str, channel: str | None, answers: bool
) -> None:
    flag(rules, **{off: False})
    [turn] = say(flow_at(home), "What is a topic?", channel=channel)
    assert turn.should_respond == answers
    if not answers:
        assert decided(rules)[0].matched_rule == f"scope:{off}"


def test_a_channel_that_is_left_out_or_unknown_passes_no_switch(
    home: Path, rules: GuardrailStore
) -> None:
    flag(rules, ai_enabled_for_chats=False, ai_enabled_for_comments=False)
    [turn] = say(flow_at(home), "What is a topic?")
    assert not turn.should_respond
    for channel in ("chats", "Comment", "dm", ""):
        with pytest.raises(InputError, match="channel must be chat or comment"):
            say(flow_at(home), "What is a topic?", channel=channel)


@on_both
def test_rules_hold_from_the_next_message_on(home: Path, rules: GuardrailStore) -> None:
    async def run() -> list[bool]:
        async with flow_at(home) as flow:
            before = await flow.process("s1", "A topic?")
            flag(rules, flagged_keywords=["topic"])
            blocked = await flow.process("s1", "A topic?")
            flag(rules, flagged_keywords=[])
            after = await flow.process("s1", "A topic?")
        return [turn.should_respond for turn in (before, blocked, after)]

    assert asyncio.run(run()) == [True, False, True]


def test_a_flagged_message_is_shown_to_no_model(
    home: Path, rules: GuardrailStore, moderation: ModerationServer
) -> None:
    flag(rules, flagged_keywords=["spam"])
    settings = {"guardrails": {"moderation_url": moderation.url}}
    turns = say(flow_at(home, **settings), "an insult", "spam")
    assert [turn.counters.model_calls for turn in turns] == [0, 0]
    assert turns[0].error_message == "GUARDRAIL_PRE_BLOCKED: OpenAI Moderation: harassment"
    # What the rules block is not sent to the endpoint either.
    assert moderation.texts == ["an insult"]


@on_both
@pytest.mark.parametrize("opens", [False, True])
def test_moderation_that_is_down_is_decided_by_the_setting(
    home: Path, rules: GuardrailStore, moderation: ModerationServer, opens: bool
) -> None:
    moderation.close()
    failure = "fail_open" if opens else "fail_closed"
    settings = {"moderation_url": moderation.url, "moderation_failure": failure}
    [turn] = say(flow_at(home, guardrails=settings), "What is a topic?")
    assert turn.should_respond == opens
    entry = open_entries(home)[0]
    assert (entry["phase"], entry["error_type"]) == ("guardrails", "ConnectError")
    assert decided(rules)[-1].decision == ("respond" if opens else "ignore")
