"""The words and numbers of silent-errors-and-guardrails.md, and what wins over what."""

from __future__ import annotations

import pytest

from unified_flow.guardrails.matcher import Match, Rule
from unified_flow.guardrails.moderator import Moderated, ModerationFailed
from unified_flow.guardrails.user_rules import UserRules
from unified_flow.guardrails.verdict import (
    PASS,
    GuardrailResult,
    of_matches,
    of_moderation,
    of_scope,
)

FAILED = ModerationFailed("no answer in time", TimeoutError())


def test_a_keyword_blocks_in_the_words_of_the_document() -> None:
    result = of_matches([Match(Rule("keyword", "spam"), disguised=False)])
    assert result.as_state() == {
        "decision": "block",
        "reason": "Flagged keyword detected: 'spam'",
        "confidence": 0.95,
    }
    assert result.matched_rule == "flagged_keyword:spam"


def test_a_phrase_in_disguise_is_a_little_less_certain() -> None:
    result = of_matches([Match(Rule("phrase", "buy now"), disguised=True)])
    assert result.matched_rule == "flagged_phrase:buy now"
    assert result.confidence == 0.9


def test_a_block_wins_over_an_escalation() -> None:
    person = Match(Rule("keyword", "lawyer", escalates=True), disguised=False)
    flagged = Match(Rule("keyword", "spam"), disguised=False)
    assert of_matches([person]).decision == "escalate"
    assert of_matches([person]).matched_rule == "escalate_keyword:lawyer"
    assert of_matches([person, flagged]).matched_rule == "flagged_keyword:spam"


@pytest.mark.parametrize(
    ("off", "channel", "rule"),
    [
        ("ai_control_enabled", None, "scope:ai_control_enabled"),
        ("ai_control_enabled", "chat", "scope:ai_control_enabled"),
        ("ai_enabled_for_chats", "chat", "scope:ai_enabled_for_chats"),
        ("ai_enabled_for_comments", "comment", "scope:ai_enabled_for_comments"),
        ("ai_enabled_for_chats", "comment", None),
        ("ai_enabled_for_comments", "chat", None),
        ("ai_enabled_for_chats", None, None),
    ],
)
def test_what_is_off_is_silent(off: str, channel: str | None, rule: str | None) -> None:
    result = of_scope(UserRules(user_id="u", **{off: False}), channel)
    assert result.matched_rule == rule
    assert result.passes == (rule is None)


def test_moderation_says_what_was_violated() -> None:
    said = Moderated(True, {"harassment": 0.91, "hate": 0.4})
    before = of_moderation(said, stage="pre", fails_open=False)
    assert before == GuardrailResult(
        "block", "OpenAI Moderation: harassment, hate", 0.91, "openai_moderation"
    )
    after = of_moderation(said, stage="post", fails_open=False)
    assert after.reason == "Violates: harassment, hate"


def test_some_categories_go_to_a_person_and_a_reply_never_does() -> None:
    said = Moderated(True, {"self-harm": 0.8})
    assert of_moderation(said, stage="pre", fails_open=False, escalate=["self-harm"]).decision == (
        "escalate"
    )
    assert of_moderation(said, stage="post", fails_open=False, escalate=["self-harm"]).decision == (
        "block"
    )


def test_a_text_that_is_not_flagged_passes() -> None:
    assert of_moderation(Moderated(False), stage="pre", fails_open=False) is PASS


@pytest.mark.parametrize(("fails_open", "decision"), [(False, "block"), (True, "pass")])
def test_failed_moderation_is_decided_by_the_setting(fails_open: bool, decision: str) -> None:
    result = of_moderation(FAILED, stage="pre", fails_open=fails_open)
    assert result.decision == decision
    assert result.reason == "Moderation failed: no answer in time"
    assert result.matched_rule == "moderation_failed"
