"""Conversations: messages and replies that are blocked, models that are away, and restarts."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import httpx
import pytest

from tests.answers import COMPLETE, DRAFT, NOTHING_CLAIMED, open_entries, script, started_phases
from tests.servers.model_server import ModelServer, rate_limited, refused_url, status
from tests.servers.moderation_server import ModerationServer
from unified_flow.api.app import make_app
from unified_flow.errors import InputError, PhaseError, RetrievalError, SynthesisError
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.rules import UserRules
from unified_flow.guardrails.settings import GuardrailSettings
from unified_flow.guardrails.stats import summed
from unified_flow.guardrails.store import Decision, GuardrailStore, store_of
from unified_flow.memory import MemoryStore
from unified_flow.models.scripted import ScriptedModel
from unified_flow.resuming.errors import NotResumableError
from unified_flow.resuming.run import Resumption, resume_turn
from unified_flow.sessions.store import SessionStore
from unified_flow.turn import Turn
from unified_flow.wiring import wire

# What the moderation of a test may take offence at in the reply, and in no question.
REPLY = "named bus"


@pytest.fixture
def moderation() -> Iterator[ModerationServer]:
    with ModerationServer({"insult": {"harassment": 0.91}}) as server:
        yield server


@pytest.fixture
def rules(
    home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GuardrailStore]:
    """The store of the flows at `home`: a file, or PostgreSQL for tests that run `on_both`."""
    settings = GuardrailSettings()
    if getattr(request, "param", "sqlite") == "postgresql":
        settings = GuardrailSettings(database_url_env="RULES_URL")
        monkeypatch.setenv("RULES_URL", request.getfixturevalue("postgres_url"))
        monkeypatch.setenv("UNIFIED_FLOW_GUARDRAILS__DATABASE_URL_ENV", "RULES_URL")
    store = store_of(home, settings)
    yield store
    store.close()


on_both = pytest.mark.parametrize("rules", ["sqlite", "postgresql"], indirect=True)


def flag(store: GuardrailStore, user: str = "default", **columns: Any) -> None:
    store.change(user, lambda rules: UserRules(**(rules.model_dump() | columns)))


class Waits:
    """Stands in for time: no test waits, and every wait is known."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.meanwhile()


def flow_at(home: Path, waits: Waits | None = None, **settings: Any) -> UnifiedFlow:
    """Over a scripted model, unless `settings` name another one."""
    over = settings.pop("script", {})
    if "base_url" in settings:
        return UnifiedFlow(wire(home, model="test-model", pause=waits, **settings))
    model = ScriptedModel(script(planner=COMPLETE, **over))
    flow = wire(home, extra_models={"scripted": model}, model="scripted", pause=waits, **settings)
    return UnifiedFlow(flow)


def say(flow: UnifiedFlow, *messages: str, session: str = "s1", **options: Any) -> list[Turn]:
    async def run() -> list[Turn]:
        async with flow:
            return [await flow.process(session, message, **options) for message in messages]

    return asyncio.run(run())


def remembered(home: Path, session: str = "s1") -> list[str]:
    """What the next turn of the session is told of it."""
    flow = flow_at(home)
    found = flow.services.sessions.recent(session, before=10**9, limit=99)
    asyncio.run(flow.aclose())
    return [turn.question for turn in found]


def decided(store: GuardrailStore) -> list[Decision]:
    return store.decisions(limit=99)[::-1]


def alerts(home: Path) -> list[tuple[str, str, int]]:
    """What a spike has told: error, severity, how often."""
    return [
        (entry["error_type"], entry["severity"], entry["occurrences"])
        for entry in open_entries(home)
        if entry["error_type"].startswith("SpikeOf")
    ]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "unified_flow.guardrails"]


@pytest.fixture(autouse=True)
def _all_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "unified_flow.guardrails")


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

    async def again() -> Turn:
        moderation.flags[REPLY] = {"harassment": 0.91}
        async with flow_at(home, **settings) as flow:
            done = await resume_turn(flow, 2, Resumption(from_phase="synthesis"))
            return done.turn

    assert asyncio.run(again()).status == "silenced"
    assert remembered(home) == ["What is a topic?"]
    with closing(sqlite3.connect(home / "shared_state" / "sessions.sqlite3")) as sessions:
        kept = sessions.execute("SELECT turn_id, role FROM messages ORDER BY turn_id, role")
        assert kept.fetchall() == [(1, "assistant"), (1, "user")]


def test_a_blocked_reply_leaves_nothing_in_the_memory_of_its_user(
    home: Path, rules: GuardrailStore, moderation: ModerationServer
) -> None:
    from unified_flow.results import Plan, ToolRequest

    settings: dict[str, Any] = {"guardrails": {"moderation_url": moderation.url}}
    (home / "unified_flow.toml").write_text('[tools]\nallow = ["memory.*"]\n')
    memory = MemoryStore(home / "shared_state" / "memory")
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
    """`graceful` has a bound for the turn; moderation that hangs has failed when it is up."""
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

    async def run() -> tuple[Turn | PhaseError, float]:
        async with flow:
            started = perf_counter()
            try:
                turn: Turn | PhaseError = await flow.process("s1", "What is a topic?")
            except PhaseError as exc:
                turn = exc
            took = perf_counter() - started
            moderation.close()
            return turn, took

    ended, took = asyncio.run(run())
    assert took < 5
    if isinstance(ended, PhaseError):
        # The message was let through, and no time was left to answer it.
        assert (opens, stage, ended.scope) == (True, "pre", "pipeline")
        return
    assert ended.should_respond == opens
    assert decided(rules)[-1].matched_rule == "moderation_failed"


def test_a_question_back_is_a_reply_too(home: Path, moderation: ModerationServer) -> None:
    from unified_flow.results import Reflection

    back = Reflection(decision="CLARIFY", confidence=0.9, clarification_question="What insult?")
    settings = {"guardrails": {"moderation_url": moderation.url}}
    [turn] = say(flow_at(home, script={"reflection": back}, **settings), "And?")
    assert turn.status == "silenced"
    assert turn.response is None


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
            wanted = Resumption(intervention_id=entry["id"], note="it is back")
            return await resume_turn(flow, 1, wanted)

    done = asyncio.run(retry())
    assert (done.turn.response, done.closed) == (DRAFT.response, entry["id"])


@pytest.mark.parametrize(("message", "answers"), [("What is a topic?", True), ("spam", False)])
def test_a_decision_that_cannot_be_kept_is_told_and_changes_nothing(
    home: Path, rules: GuardrailStore, message: str, answers: bool
) -> None:
    flag(rules, flagged_keywords=["spam"])
    with closing(sqlite3.connect(home / "shared_state" / "guardrails.sqlite3")) as database:
        database.execute("DROP TABLE ai_decisions")
    [turn] = say(flow_at(home), message)
    assert turn.should_respond == answers
    [entry] = open_entries(home)
    assert (entry["phase"], entry["severity"]) == ("guardrails", "critical")
    assert "ai_decisions" in entry["error_message"]


def test_a_question_that_is_edited_is_checked_anew(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["spam"])
    with pytest.raises(SynthesisError):
        say(flow_at(home, script={"synthesis": "no json"}), "What is a topic?")

    async def resume() -> Any:
        async with flow_at(home) as flow:
            edited = Resumption(edited={"question": "What is spam?"})
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
            return await resume_turn(flow, 1, Resumption(intervention_id=named, note="started it"))

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
            return await resume_turn(flow, 1, Resumption())

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
            return (await resume_turn(flow, 1, Resumption(edited={"synthesis": insult}))).turn

    resumed = asyncio.run(resume())
    assert (resumed.status, resumed.response, resumed.saved) == ("silenced", None, False)
    assert remembered(home) == []


def test_rules_that_cannot_be_read_silence_and_are_told(home: Path) -> None:
    (home / "shared_state").mkdir()
    (home / "shared_state" / "guardrails.sqlite3").write_text("no database " * 100)
    [turn] = say(flow_at(home), "What is a topic?")
    assert turn.error_message == "GUARDRAIL_PRE_BLOCKED: The rules cannot be read"
    assert {entry["error_type"] for entry in open_entries(home)} == {"RetrievalError"}


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


def test_a_model_that_is_down_for_two_attempts_is_asked_a_third_time(
    home: Path, docs: Path, rules: GuardrailStore, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelServer() as server:
        good = script(planner=[COMPLETE])
        server.script = good | {"reflection": [status(503), rate_limited(9), good["reflection"]]}
        waits = Waits()
        flow = flow_at(home, waits, policy="silent", base_url=server.url, docs=[docs])
        [turn] = say(flow, "What is a topic?")
    assert turn.response == DRAFT.response
    assert (turn.should_respond, turn.retry_count) == (True, 2)
    assert waits.seconds == [2.0, 9.0]
    said = lines(caplog)
    assert said[0].startswith("[LLM RETRY] Attempt 1/3 failed: 503")
    assert said[1].startswith("[LLM RETRY] Attempt 2/3 failed: 429")
    assert said[2] == "[LLM RETRY] Success on attempt 3/3"
    assert open_entries(home) == []
    assert decided(rules)[0].retry_count == 2


def test_a_model_that_is_down_for_all_three_ends_in_silence(
    home: Path, docs: Path, rules: GuardrailStore, caplog: pytest.LogCaptureFixture
) -> None:
    waits = Waits()
    flow = flow_at(home, waits, policy="silent", base_url=refused_url(), docs=[docs])
    [turn] = say(flow, "What is a topic?", user_id="abc123")
    assert turn.response is None
    assert (turn.should_respond, turn.retry_count) == (False, 3)
    assert turn.error_message is not None
    assert turn.error_message.startswith("LLM_ERROR: All connection attempts failed")
    assert waits.seconds == [2.0, 4.0]
    said = lines(caplog)
    assert [line.split(" failed")[0] for line in said[:2]] == [
        "[LLM RETRY] Attempt 1/3",
        "[LLM RETRY] Attempt 2/3",
    ]
    assert said[2].startswith("[LLM ERROR] Max retries (3) reached for user abc123: All conn")
    assert said[3].startswith("[SILENT FAILURE] LLM error for user abc123: LLM_ERROR: All conn")
    [entry] = open_entries(home)
    assert (entry["phase"], entry["error_type"]) == (started_phases(home)[-1], "ConnectError")
    [decision] = decided(rules)
    assert (decision.decision, decision.outcome, decision.retry_count) == (
        "ignore",
        "llm_error",
        3,
    )
    assert decision.snapshot_json["intervention_id"] == entry["id"]


def test_the_last_attempt_is_spoken_of_only_where_it_was_made(
    home: Path, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Three further tries in all, but of two phases; what ends the turn had none."""
    good = script(planner=[COMPLETE])
    with ModelServer(good) as server:
        server.script = good | {
            "reflection": [status(503), status(503), good["reflection"]],
            "synthesis": [status(503), good["synthesis"]],
            "validation": status(401),
        }
        flow = flow_at(home, Waits(), policy="silent", base_url=server.url, docs=[docs])
        [turn] = say(flow, "What is a topic?")
    assert (turn.should_respond, turn.retry_count) == (False, 3)
    said = [line.split("]")[0] for line in lines(caplog)]
    assert said[-1] == "[SILENT FAILURE"
    assert "[LLM ERROR" not in said


@pytest.mark.parametrize("failures", [2, 3])
def test_over_http_too_a_model_may_be_down_for_two_attempts_and_not_for_three(
    home: Path, docs: Path, rules: GuardrailStore, failures: int
) -> None:
    waits = Waits()
    good = script(planner=[COMPLETE])
    down = good | {"reflection": [status(503)] * failures + [good["reflection"]]}

    async def ask(server: ModelServer) -> httpx.Response:
        own = {"policy": "silent", "base_url": server.url, "docs": [docs]}
        app = make_app(wire(home, model="test-model", pause=waits, **own))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1"
            ) as client,
        ):
            asked = {"question": "What is a topic?", "session_id": "s1"}
            return await client.post("/query", json=asked)

    with ModelServer(down) as server:
        reply = asyncio.run(ask(server))
    told = reply.json()
    assert (reply.status_code, told["should_respond"]) == (200, failures == 2)
    assert told["answer"] == (DRAFT.response if failures == 2 else "")
    assert waits.seconds == [2.0, 4.0]
    outcome = "passed" if failures == 2 else "llm_error"
    assert [(d.outcome, d.retry_count) for d in decided(rules)] == [(outcome, failures)]


def test_an_endpoint_goes_down_between_two_messages(
    home: Path, docs: Path, rules: GuardrailStore
) -> None:
    """The document's "Retry avec API down", with a server that really goes away."""
    waits = Waits()
    with ModelServer(script(planner=[COMPLETE])) as server:

        async def run() -> list[Turn]:
            made = flow_at(home, waits, policy="silent", base_url=server.url, docs=[docs])
            async with made as flow:
                up = await flow.process("s1", "What is a topic?")
                await asyncio.to_thread(server.close)
                return [up, await flow.process("s1", "What is a service?")]

        up, down = asyncio.run(run())
    assert (up.should_respond, down.should_respond) == (True, False)
    assert waits.seconds == [2.0, 4.0]
    assert remembered(home) == ["What is a topic?"]


def test_a_wrong_key_is_not_tried_again(
    home: Path, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waits = Waits()
    with ModelServer(script(reflection=status(401))) as server:
        flow = flow_at(home, waits, policy="silent", base_url=server.url, docs=[docs])
        [turn] = say(flow, "What is a topic?")
        assert server.phases.count("reflection") == 1
    assert (turn.should_respond, turn.retry_count, waits.seconds) == (False, 0, [])
    assert [line.split("]")[0] for line in lines(caplog)] == ["[SILENT FAILURE"]


def test_under_fail_fast_nothing_is_tried_again(home: Path, docs: Path) -> None:
    waits = Waits()
    with ModelServer(script(reflection=status(503))) as server:
        with pytest.raises(PhaseError):
            say(flow_at(home, waits, base_url=server.url, docs=[docs]), "What is a topic?")
        assert server.phases.count("reflection") == 1
    assert waits.seconds == []
    assert not (home / "shared_state" / "guardrails.sqlite3").exists()


def test_a_turn_that_was_silenced_can_go_on_when_the_cause_is_mended(
    home: Path, rules: GuardrailStore
) -> None:
    silent = {"policy": "silent"}
    say(flow_at(home, script={"synthesis": "no json"}, waits=Waits(), **silent), "A topic?")
    assert remembered(home) == []

    async def resume(script: dict[str, Any]) -> Any:
        async with flow_at(home, script=script, waits=Waits(), **silent) as flow:
            return await resume_turn(flow, 1, Resumption())

    still = asyncio.run(resume({"synthesis": "no json"}))
    assert isinstance(still.error, SynthesisError)
    done = asyncio.run(resume({}))
    assert done.turn.response == DRAFT.response
    assert done.turn.should_respond
    assert remembered(home) == ["A topic?"]


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
    stats = summed(rules.by_day(1), 1)
    assert (stats.blocked, stats.silent_failures) == (3, 0)
    assert stats.blocks[0].rule == "scope:ai_control_enabled"


def test_a_killed_turn_is_checked_before_it_goes_on(home: Path, rules: GuardrailStore) -> None:
    """The process ends after the turn has begun and before its message was looked at."""
    flow = flow_at(home)
    ledger = flow._begin(
        None,
        session_id="s1",
        request_id="r1",
        user_id="default",
        channel=None,
        question="spam?",
        persist=True,
    )
    with ledger:
        pass
    flag(rules, flagged_keywords=["spam"])

    async def resume() -> Any:
        async with flow:
            return await resume_turn(flow, 1, Resumption())

    done = asyncio.run(resume())
    assert done.turn.status == "silenced"
    assert started_phases(home) == []


def test_a_blocked_turn_can_be_run_under_other_rules(home: Path, rules: GuardrailStore) -> None:
    flag(rules, flagged_keywords=["topic"])
    say(flow_at(home), "What is a topic?")

    async def resume(**wanted: Any) -> Any:
        async with flow_at(home) as flow:
            return await resume_turn(flow, 1, Resumption(**wanted))

    with pytest.raises(NotResumableError, match="was silenced"):
        asyncio.run(resume())
    still = asyncio.run(resume(from_phase="query_analyzer"))
    assert still.turn.status == "silenced"
    flag(rules, flagged_keywords=[])
    done = asyncio.run(resume(from_phase="query_analyzer"))
    assert done.turn.response == DRAFT.response
    assert remembered(home) == ["What is a topic?"]


def test_a_tool_that_asks_a_person_is_an_escalation_and_no_word(
    home: Path, rules: GuardrailStore
) -> None:
    from unified_flow.results import Plan, ToolRequest

    ask = ToolRequest(tool="human.ask", args={"question": "May I?"})
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[ask])
    model = ScriptedModel(script(planner=[plan, COMPLETE]))
    made = wire(home, extra_models={"scripted": model}, model="scripted", policy="silent")
    [turn] = say(UnifiedFlow(made), "Refund me", channel="chat")
    assert not turn.should_respond
    assert [entry["type"] for entry in open_entries(home)] == ["escalation"]
    assert [(d.decision, d.outcome) for d in decided(rules)] == [("escalate", "escalated")]


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
    deadline = monotonic() + 20
    while not told.exists() and monotonic() < deadline:
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


class FullFor:
    """An observer that fills the disk of the turn's journal, and of nothing else, once `event`
    has come: the descriptor that the turn writes to is that of a device without room."""

    def __init__(self, event: str) -> None:
        self._event = event

    def __call__(self, event: Any) -> None:
        if event.event != self._event:
            return
        for file in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):
                if file.readlink().name == "journal.jsonl":
                    full = os.open("/dev/full", os.O_RDWR)
                    os.dup2(full, int(file.name))
                    os.close(full)


@pytest.mark.parametrize(
    ("asked", "outcome"), [("What is a topic?", "llm_error"), ("spam", "pre_blocked")]
)
def test_silence_and_its_record_do_not_hang_on_the_journal(
    home: Path, rules: GuardrailStore, asked: str, outcome: str
) -> None:
    flag(rules, flagged_keywords=["spam"])

    async def run() -> dict[str, Any]:
        over = {"reflection": ConnectionError("gone")}
        async with flow_at(home, Waits(), policy="silent", script=over) as flow:
            full = FullFor("turn_started" if outcome == "pre_blocked" else "phase_started")
            return await flow.process_request("s1", asked, observer=full)

    answer = asyncio.run(run())
    assert (answer["response"], answer["should_respond"]) == ("", False)
    assert answer["error_message"]
    [decision] = decided(rules)
    assert (decision.decision, decision.outcome) == ("ignore", outcome)


FULL_DISK = """
import asyncio, json, resource, sys
from pathlib import Path
from tests.answers import COMPLETE, script
from unified_flow.flow import UnifiedFlow
from unified_flow.models.scripted import ScriptedModel
from unified_flow.wiring import wire

async def ask():
    own = {"scripted": ScriptedModel(script(planner=COMPLETE))}
    made = wire(Path(sys.argv[1]), extra_models=own, model="scripted", policy="silent")
    async with UnifiedFlow(made) as flow:
        for limit_bytes in (0, 1600, 4000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))
            for text in ("What is a topic?", "spam"):
                print(json.dumps(await flow.process_request("s1", text)), flush=True)

asyncio.run(ask())
"""


def test_a_disk_that_is_full_costs_no_silence(home: Path, rules: GuardrailStore) -> None:
    """Before the turn has begun, and in the middle of it: a bounded file size is as good."""
    flag(rules, flagged_keywords=["spam"])
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(home)], capture_output=True, text=True, check=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["response"], answer["should_respond"]) for answer in said] == [("", False)] * 6
    assert "no turn can be begun" in said[0]["error_message"]
    assert said[2]["error_message"] == "ERROR: [Errno 27] File too large"
    # No file takes the failure, nor the decision: they are told on stderr, last of all.
    assert {"ConfigError", "OSError", "RetrievalError"} == {
        json.loads(line)["error_type"] for line in done.stderr.splitlines() if line[0] == "{"
    }
