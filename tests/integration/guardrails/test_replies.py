"""Replies that are blocked, and what is left of them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.answers import (
    COMPLETE,
    DRAFT,
    NOTHING_CLAIMED,
    Turns,
    open_entries,
    script,
    started_phases,
)
from tests.integration.guardrails.conversing import (
    REPLY,
    decided,
    flow_at,
    lines,
    on_both,
    remembered,
    say,
)
from tests.servers.model_server import ModelServer
from tests.servers.moderation_server import ModerationServer
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.models.scripted import ScriptedModel
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.stores import memory_store
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire


@on_both
def test_a_blocked_reply_leaves_the_session_with_what_it_answers(
    home: Path,
    rules: GuardrailStore,
    moderation: ModerationServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"guardrails": {"moderation_url": moderation.url}}
    say(flow_at(home, **settings), "What is a topic?")
    moderation.flags[REPLY] = {"harassment": 0.91}
    [turn] = say(flow_at(home, **settings), "And what am I?")
    assert turn.response is None
    assert turn.citations == []
    assert turn.error_message == "GUARDRAIL_POST_BLOCKED: Violates: harassment"
    assert lines(caplog)[-3:] == [
        "[GUARDRAILS POST] Generated response flagged: Violates: harassment",
        "[GUARDRAILS POST] Removing triggering user message from context",
        "[SILENT FAILURE] Post-guardrail blocked response for user default",
    ]
    assert "save" not in started_phases(home, 2)
    # After a restart too, the session knows only the first exchange.
    assert remembered(home) == ["What is a topic?"]
    last = decided(rules)[-1]
    assert (last.outcome, last.matched_rule) == ("post_blocked", "openai_moderation")
    assert last.snapshot_json["reply"] == DRAFT.response
    assert moderation.texts[-2:] == ["And what am I?", DRAFT.response]


def test_a_reply_that_was_kept_is_taken_back_when_it_is_made_anew(
    home: Path, moderation: ModerationServer
) -> None:
    settings = {"guardrails": {"moderation_url": moderation.url}}
    say(flow_at(home, **settings), "What is a topic?", "And what is a service?")
    assert len(remembered(home)) == 2
    # The process died between keeping the reply and saying so.
    journal = Turns(home).journal(2)
    lines = journal.read_bytes().splitlines(keepends=True)
    saving = next(n for n, line in enumerate(lines) if b'"phase":"save"' in line)
    journal.write_bytes(b"".join(lines[: saving + 1]))

    async def again() -> Turn:
        moderation.flags[REPLY] = {"harassment": 0.91}
        async with flow_at(home, **settings) as flow:
            done = await resume_turn(flow, 2, ResumeRequest(from_phase="synthesis"))
            return done.turn

    assert asyncio.run(again()).status == "silenced"
    assert remembered(home) == ["What is a topic?"]
    with closing(sqlite3.connect(home / "shared_state" / "sessions.sqlite3")) as sessions:
        kept = sessions.execute("SELECT turn_id, role FROM messages ORDER BY turn_id, role")
        assert kept.fetchall() == [(1, "assistant"), (1, "user")]


def test_a_blocked_reply_leaves_nothing_in_the_memory_of_its_user(
    home: Path, rules: GuardrailStore, moderation: ModerationServer
) -> None:
    from unified_flow.turns.results import Plan, ToolRequest

    settings: dict[str, Any] = {"guardrails": {"moderation_url": moderation.url}}
    (home / "unified_flow.toml").write_text('[tools]\nallow = ["memory.*"]\n')
    memory = memory_store(home)
    older = memory.create("default", "The user likes robots.")

    def remembering(text: str) -> Turn:
        note = ToolRequest(tool="memory.create", args={"text": text})
        plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[note])
        model = ScriptedModel(script(planner=[plan, COMPLETE], synthesis=NOTHING_CLAIMED))
        made = wire(home, extra_models={"scripted": model}, model="scripted", **settings)
        return say(UnifiedFlow(made), f"Remember that {text}")[0]

    assert remembering("I am called Ada.").should_respond
    moderation.flags[NOTHING_CLAIMED.response] = {"hate": 0.9}
    assert remembering("I like what is vile.").status == "silenced"
    kept = [record.text for record in memory.all("default")]
    assert kept == [older.text, "I am called Ada."]
    assert decided(rules)[-1].snapshot_json["forgotten"] == "I like what is vile."


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("stage", ["pre", "post"])
def test_checks_are_within_the_time_of_the_policy(
    home: Path, rules: GuardrailStore, moderation: ModerationServer, stage: str, opens: bool
) -> None:
    """`graceful` has a bound for the turn; moderation that hangs has failed when it is up. It
    hangs until it is closed, and the turn has ended before."""
    moderation.hangs_for = "" if stage == "pre" else REPLY
    flow = flow_at(
        home,
        policy="graceful",
        graceful={"pipeline_timeout_s": 0.7},
        guardrails={
            "moderation_url": moderation.url,
            "moderation_timeout_s": 60.0,
            "moderation_failure": "fail_open" if opens else "fail_closed",
        },
    )

    async def run() -> Turn | PhaseError:
        async with flow:
            try:
                turn: Turn | PhaseError = await flow.process("s1", "What is a topic?")
            except PhaseError as exc:
                turn = exc
            moderation.close()
            return turn

    ended = asyncio.run(run())
    if isinstance(ended, PhaseError):
        # The message was let through, and no time was left to answer it.
        assert (opens, stage, ended.scope) == (True, "pre", "pipeline")
        return
    assert ended.should_respond == opens
    assert decided(rules)[-1].matched_rule == "moderation_failed"


def test_a_question_back_is_a_reply_too(home: Path, moderation: ModerationServer) -> None:
    from unified_flow.turns.results import Reflection

    back = Reflection(decision="CLARIFY", confidence=0.9, clarification_question="What insult?")
    settings = {"guardrails": {"moderation_url": moderation.url}}
    [turn] = say(flow_at(home, script={"reflection": back}, **settings), "And?")
    assert turn.status == "silenced"
    assert turn.response is None


def test_moderation_that_is_down_for_the_reply_silences_it(
    home: Path, rules: GuardrailStore, moderation: ModerationServer
) -> None:
    """Until it is back: then the turn goes on with the reply that it had."""
    moderation.fails_for = REPLY
    settings = {"guardrails": {"moderation_url": moderation.url}}
    [turn] = say(flow_at(home, **settings), "What is a topic?")
    assert turn.error_message == "GUARDRAIL_POST_BLOCKED: Moderation failed: status 500"
    assert remembered(home) == []
    [entry] = open_entries(home)
    assert (entry["phase"], entry["error_type"]) == ("guardrails", "HTTPStatusError")
    assert [decision.outcome for decision in decided(rules)] == ["check_failed"]
    moderation.fails_for = None

    async def retry() -> Any:
        async with flow_at(home, **settings) as flow:
            wanted = ResumeRequest(intervention_id=entry["id"], note="it is back")
            return await resume_turn(flow, 1, wanted)

    done = asyncio.run(retry())
    assert (done.turn.response, done.closed) == (DRAFT.response, entry["id"])


def test_a_reply_that_may_be_taken_back_is_shown_to_nobody(
    home: Path, docs: Path, moderation: ModerationServer
) -> None:
    """Onlookers see the text while it is written only where it cannot end in silence after that."""
    seen: dict[str, int] = {}
    moderated = {"guardrails": {"moderation_url": moderation.url}}
    ways: dict[str, dict[str, Any]] = {
        "said at once": {},
        "moderated": moderated,
        "silent": {"policy": "silent"},
    }
    for way, own in ways.items():
        with ModelServer(script(planner=[COMPLETE])) as server:
            events: list[str] = []
            flow = flow_at(home, base_url=server.url, docs=[docs], **own)
            say(flow, "What is a topic?", observer=lambda event, to=events: to.append(event.event))
            streams = [bool(request.body.get("stream")) for request in server.requests]
        seen[way] = events.count("text_arrived") + sum(streams)
    assert seen.pop("said at once") > 0
    assert set(seen.values()) == {0}
