"""What a person is told of: spikes, escalations, turns that wait."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.answers import COMPLETE, every_phase_by_model, open_entries, script
from tests.integration.guardrails.conversing import (
    REPLY,
    decided,
    flag,
    flow_at,
    on_both,
    say,
)
from tests.servers.model_server import refused_url
from tests.servers.moderation_server import ModerationServer
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.decisions import stats_of
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.models.scripted import ScriptedModel
from unified_flow.wiring import wire


def alerts(home: Path) -> list[tuple[str, str, int]]:
    """What a spike has told: error, severity, how often."""
    return [
        (entry["error_type"], entry["severity"], entry["occurrences"])
        for entry in open_entries(home)
        if entry["error_type"].startswith("SpikeOf")
    ]


def test_what_needs_a_person_becomes_an_escalation(home: Path, rules: GuardrailStore) -> None:
    flag(rules, escalate_keywords=["lawyer"])
    [turn] = say(flow_at(home), "My lawyer will write.", channel="chat", session="thread-7")
    assert turn.error_message == ("GUARDRAIL_PRE_ESCALATED: Escalation keyword detected: 'lawyer'")
    [entry] = open_entries(home)
    assert (entry["type"], entry["session_id"]) == ("escalation", "thread-7")
    [decision] = decided(rules)
    assert decision.decision == "escalate"
    assert decision.snapshot_json["intervention_id"] == entry["id"]
    say(flow_at(home), *["My lawyer!"] * 6, session="thread-7")
    assert len(open_entries(home)) == 7  # each is answered by itself
    for _ in range(2):  # but one that is delivered twice
        say(flow_at(home), "My lawyer!", session="thread-7", request_id="delivery-1")
    assert len(open_entries(home)) == 8


@on_both
def test_many_blocks_alert_a_person_once(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["spam"])
    say(flow_at(home, guardrails={"alert_count": 3}), *["spam"] * 6)
    assert alerts(home) == [("SpikeOfBlocksError", "critical", 1)]


def test_blocked_replies_count_and_a_person_is_told_once_a_window(
    home: Path,
    rules: GuardrailStore,
    moderation: ModerationServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flag(rules, flagged_keywords=["spam"])
    moderation.flags[REPLY] = {"hate": 0.8}
    own = {"moderation_url": moderation.url, "alert_count": 3, "alert_window_s": 600.0}
    told: list[int] = []

    async def run() -> None:
        async with flow_at(home, guardrails=own) as flow:
            for asked in ("spam", "spam", "What is a topic?", "spam"):
                await flow.process("s1", asked)
                told.append(len(alerts(home)))
            later = monotonic() + 601
            monkeypatch.setattr("unified_flow.guardrails.recorder.monotonic", lambda: later)
            for _ in range(2):
                await flow.process("s1", "spam")
                told.append(len(alerts(home)))

    asyncio.run(run())
    assert told == [0, 0, 1, 1, 2, 2]


def test_many_silent_failures_alert_a_person_once(
    home: Path, rules: GuardrailStore, moderation: ModerationServer
) -> None:
    """A model that is down, and moderation that is: either way nobody knew what to say."""
    settings: dict[str, Any] = {"policy": "silent", "guardrails": {"alert_count": 3}}
    over = {"query_analyzer": ValueError("down"), "reflection": ValueError("down")}
    say(flow_at(home, script=over, **settings), "A topic?", "A topic?")
    assert alerts(home) == []
    moderation.close()
    own = {"moderation_url": moderation.url, "alert_count": 3}
    say(flow_at(home, guardrails=own), "A topic?", "A topic?")
    assert alerts(home) == [("SpikeOfSilentFailuresError", "critical", 1)]
    assert [decision.outcome for decision in decided(rules)] == ["llm_error"] * 2 + [
        "check_failed"
    ] * 2


def test_silence_that_the_user_has_ordered_alerts_nobody(home: Path, rules: GuardrailStore) -> None:
    flag(rules, ai_control_enabled=False)
    say(flow_at(home, guardrails={"alert_count": 2}), *["A topic?"] * 3)
    assert alerts(home) == []
    stats = stats_of(rules.by_day(1), 1)
    assert (stats.blocked, stats.silent_failures) == (3, 0)
    assert stats.blocks[0].rule == "scope:ai_control_enabled"


@every_phase_by_model
def test_a_tool_that_asks_a_person_is_an_escalation_and_no_word(
    home: Path, rules: GuardrailStore
) -> None:
    from unified_flow.turns.results import Plan, ToolRequest

    ask = ToolRequest(tool="human.ask", args={"question": "May I?"})
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[ask])
    model = ScriptedModel(script(planner=[plan, COMPLETE]))
    made = wire(home, extra_models={"scripted": model}, model="scripted", policy="silent")
    [turn] = say(UnifiedFlow(made), "Refund me", channel="chat")
    assert not turn.should_respond
    assert [entry["type"] for entry in open_entries(home)] == ["escalation"]
    assert [(d.decision, d.outcome) for d in decided(rules)] == [("escalate", "escalated")]


def test_an_alert_reaches_who_is_to_be_notified(
    home: Path, rules: GuardrailStore, tmp_path: Path
) -> None:
    told = tmp_path / "told.json"
    keep = f"sh -c 'cat > {told}.new && mv {told}.new {told}'"
    (home / "unified_flow.toml").write_text(
        f'[notifications]\ncommand = "{keep}"\n[guardrails]\nalert_count = 2\n'
    )
    flag(rules, flagged_keywords=["spam"])
    say(flow_at(home), "spam", "spam")
    while not told.exists():
        sleep(0.02)
    assert json.loads(told.read_text())["error_type"] == "SpikeOfBlocksError"


@pytest.mark.parametrize(
    ("message", "stays"), [("spam", False), ("my lawyer", True), ("anything", True)]
)
def test_a_turn_that_is_not_kept_stays_only_for_a_person(
    home: Path, rules: GuardrailStore, message: str, stays: bool
) -> None:
    """Blocked: it goes. For a person, or unchecked because moderation is down: it waits."""
    flag(rules, flagged_keywords=["spam"], escalate_keywords=["lawyer"])
    own = {"moderation_url": refused_url()}
    [turn] = say(flow_at(home, guardrails=own), message, persist=False)
    assert turn.status == "silenced"
    assert (home / "shared_state" / "turns" / "turn_000001").exists() == stays
