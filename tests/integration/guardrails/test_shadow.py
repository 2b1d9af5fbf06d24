"""Flagged words in replies, and the mode that records what would have been blocked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.answers import DRAFT, open_entries
from tests.integration.guardrails.conversing import (
    REPLY,
    decided,
    flag,
    flow_at,
    lines,
    on_both,
    remembered,
    say,
)
from tests.servers.moderation_server import ModerationServer
from unified_flow.guardrails.decisions import stats_of
from unified_flow.guardrails.store import GuardrailStore


@on_both
def test_flagged_words_block_a_reply_where_the_setting_says_so(
    home: Path, rules: GuardrailStore
) -> None:
    flag(rules, flagged_phrases=[REPLY])
    [said] = say(flow_at(home), "What is a topic?")
    assert said.response == DRAFT.response
    [blocked] = say(flow_at(home, guardrails={"check_replies": True}), "And a topic?")
    assert blocked.response is None
    reason = f"Flagged phrase detected: '{REPLY}'"
    assert blocked.error_message == f"GUARDRAIL_POST_BLOCKED: {reason}"
    last = decided(rules)[-1]
    assert (last.outcome, last.matched_rule) == ("post_blocked", f"flagged_phrase:{REPLY}")
    assert last.snapshot_json["reply"] == DRAFT.response
    assert remembered(home) == ["What is a topic?"]


def test_words_that_go_to_a_person_and_those_of_others_block_no_reply(
    home: Path, rules: GuardrailStore
) -> None:
    flag(rules, escalate_phrases=[REPLY])
    flag(rules, user="bob", flagged_phrases=[REPLY])
    [turn] = say(flow_at(home, guardrails={"check_replies": True}), "What is a topic?")
    assert turn.response == DRAFT.response
    assert open_entries(home) == []


def test_replies_are_checked_for_users_without_rules_at_no_cost(home: Path) -> None:
    [turn] = say(flow_at(home, guardrails={"check_replies": True}), "What is a topic?")
    assert (turn.response, turn.post) == (DRAFT.response, None)
    assert not (home / "shared_state" / "guardrails.sqlite3").exists()


@on_both
def test_shadow_mode_records_what_would_be_blocked_and_blocks_nothing(
    home: Path,
    rules: GuardrailStore,
    moderation: ModerationServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    flag(rules, flagged_keywords=["spam"], escalate_keywords=["lawyer"])
    flag(rules, user="bob", flagged_phrases=[REPLY])
    own = {"moderation_url": moderation.url, "check_replies": True, "shadow": True}
    flow = flow_at(home, guardrails=own)
    messages = ("Is a topic spam?", "What is a topic, lawyer?", "What is an insult?")
    turns = [*say(flow, *messages)]
    turns += say(flow_at(home, guardrails=own), "And a service?", user_id="bob", session="s2")
    assert [turn.response for turn in turns] == [DRAFT.response] * 4
    assert remembered(home) == list(messages)
    assert open_entries(home) == []
    found = [
        (d.decision, d.outcome, d.matched_rule, d.snapshot_json.get("would_be"))
        for d in decided(rules)
    ]
    passed = ("respond", "passed", None, None)
    assert found == [
        ("respond", "pre_shadowed", "flagged_keyword:spam", "ignore"),
        passed,
        ("respond", "pre_shadowed", "escalate_keyword:lawyer", "escalate"),
        passed,
        ("respond", "pre_shadowed", "openai_moderation", "ignore"),
        passed,
        ("respond", "post_shadowed", f"flagged_phrase:{REPLY}", "ignore"),
        passed,
    ]
    assert decided(rules)[-2].snapshot_json["reply"] == DRAFT.response
    stats = stats_of(rules.by_day(1), 1)
    assert (stats.messages, stats.shadowed, stats.blocked, stats.escalated) == (4, 4, 0, 0)
    assert lines(caplog)[0] == "[GUARDRAILS PRE] Would block: Flagged keyword detected: 'spam'"


def test_shadow_mode_shows_a_reply_while_it_is_written(home: Path) -> None:
    own = {"check_replies": True}
    assert flow_at(home, guardrails=own).services.guardrails.may_silence
    assert not flow_at(home, guardrails=own | {"shadow": True}).services.guardrails.may_silence


@on_both
def test_in_shadow_mode_a_check_that_fails_silences_nobody(
    home: Path, rules: GuardrailStore, moderation: ModerationServer
) -> None:
    moderation.close()
    own: dict[str, Any] = {"moderation_url": moderation.url, "shadow": True}
    [turn] = say(flow_at(home, guardrails=own), "What is a topic?")
    assert turn.response == DRAFT.response
    assert open_entries(home)[0]["error_type"] == "ConnectError"
    assert [d.outcome for d in decided(rules)] == ["pre_shadowed", "post_shadowed", "passed"]


def test_ai_that_is_switched_off_stays_off_in_shadow_mode(
    home: Path, rules: GuardrailStore
) -> None:
    flag(rules, ai_enabled_for_chats=False)
    [turn] = say(flow_at(home, guardrails={"shadow": True}), "What is a topic?", channel="chat")
    assert turn.response is None
    assert [d.outcome for d in decided(rules)] == ["switched_off"]


def test_history_is_whole_in_shadow_mode(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["spam"])
    history = [{"question": "Is it spam?", "answer": "It is."}]
    flow = flow_at(home, guardrails={"shadow": True})
    [turn] = say(flow, "What is a topic?", history=history)
    assert [each.question for each in turn.history] == ["Is it spam?"]
