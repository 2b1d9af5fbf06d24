"""silent-errors-and-guardrails.md, part by part; what it leaves to hand is automatic here."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.answers import (
    COMPLETE,
    DRAFT,
    every_phase_by_model,
    open_entries,
    script,
    started_phases,
)
from tests.servers.model_server import ModelServer, status
from tests.servers.moderation_server import ModerationServer
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import InputError
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.schema import ai_decisions, ai_rules
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.phases import NAMES
from unified_flow.policies import MAX_ATTEMPTS, RETRY_DELAY_S
from unified_flow.turns.sessions import SessionStore
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.message import message_ids
from unified_flow.wiring import wire

pytestmark = every_phase_by_model

ASKED = "What is a topic?"


class Seconds(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(script(planner=[COMPLETE] * 20)) as server:
        yield server


@pytest.fixture
def store(home: Path) -> Iterator[GuardrailStore]:
    """The document's own rules, for its own user."""
    opened = open_store(home, GuardrailSettings())
    opened.change(
        "user_123",
        lambda rules: rules.model_copy(
            update={
                "flagged_keywords": ("spam", "viagra", "scam"),
                "flagged_phrases": ("buy now", "click here"),
            }
        ),
    )
    yield opened
    opened.close()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("unified_flow.guardrails")
    caplog.set_level(logging.INFO, logger.name)
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def flow(home: Path, model: ModelServer, waits: Seconds | None = None, **more: Any) -> UnifiedFlow:
    options = {"policy": "silent", "model": "test-model", "base_url": model.url} | more
    return UnifiedFlow(wire(home, pause=Seconds() if waits is None else waits, **options))


def tell(made: UnifiedFlow, *messages: str) -> list[Turn]:
    async def run() -> list[Turn]:
        async with made:
            return [await made.process("s1", text, user_id="user_123") for text in messages]

    return asyncio.run(run())


def remembered(home: Path) -> list[str]:
    sessions = SessionStore(home / "shared_state" / "sessions.sqlite3")
    found = sessions.recent("s1", before=10**9, limit=99)
    sessions.close()
    return [turn.question for turn in found]


def test_total_silence_whatever_keeps_it_from_answering(
    home: Path, store: GuardrailStore, model: ModelServer
) -> None:
    """Objectives: no "Sorry, an error has occurred" any more."""
    model.script = script(reflection=status(401))

    async def run() -> list[dict[str, Any]]:
        async with flow(home, model) as made:
            return [
                await made.process_request("s1", text, user_id="user_123")
                for text in ("spam", ASKED)
            ]

    assert [(a["response"], a["should_respond"]) for a in asyncio.run(run())] == [("", False)] * 2


def test_1_the_state_has_the_required_fields() -> None:
    turn = Turn()
    fields = (turn.should_respond, turn.retry_count, turn.error_message, turn.guardrail_pre_result)
    assert fields == (True, 0, None, None)


def test_2_every_node_is_passed_in_its_order(
    home: Path, store: GuardrailStore, model: ModelServer
) -> None:
    """Entry, pre-check, model, tools, post-check and end; the error handler is below."""
    with ModerationServer() as moderation:
        own = {"moderation_url": moderation.url}
        events: list[str] = []

        async def run() -> None:
            async with flow(home, model, guardrails=own) as made:
                await made.process(
                    "s1",
                    ASKED,
                    user_id="user_123",
                    observer=lambda e: events.append(f"{e.event}.{getattr(e, 'stage', '')}"),
                )

        asyncio.run(run())
    shown = [event for event in events if event.split("_")[0] in ("turn", "guardrail")]
    assert shown == [
        "turn_started.",
        "guardrail_checked.pre",
        "guardrail_checked.post",
        "turn_completed.",
    ]
    place = events.index("guardrail_checked.post")
    assert events[:place].count("phase_completed.") == len(NAMES) - 2  # not phases 4 and 7
    assert "coordinator" in NAMES


@pytest.mark.parametrize(
    ("message", "reason", "rule"),
    [
        ("spam!", "Flagged keyword detected: 'spam'", "flagged_keyword:spam"),
        ("Buy Now", "Flagged phrase detected: 'buy now'", "flagged_phrase:buy now"),
    ],
)
def test_guardrail_pre_with_real_rules(
    home: Path,
    store: GuardrailStore,
    model: ModelServer,
    said: list[str],
    message: str,
    reason: str,
    rule: str,
) -> None:
    """Checks 3 and 5, manual test 1: the block, field for field; no call, no message, a row."""
    [turn] = tell(flow(home, model), message)
    assert turn.should_respond is False
    assert turn.error_message == f"GUARDRAIL_PRE_BLOCKED: {reason}"
    assert turn.guardrail_pre_result == {"decision": "block", "reason": reason, "confidence": 0.95}
    assert model.requests == []
    assert turn.response is None
    [row] = store.decisions(limit=9)
    assert (row.decision, row.matched_rule, row.reason) == ("ignore", rule, reason)
    assert said == [
        f"[GUARDRAILS PRE] Message flagged and blocked: {reason}",
        "[SILENT FAILURE] Pre-guardrail blocked message for user user_123",
    ]


def test_guardrail_pre_by_moderation(
    home: Path, store: GuardrailStore, model: ModelServer, said: list[str]
) -> None:
    with ModerationServer({"idiot": {"harassment": 0.87}}) as moderation:
        own = {"moderation_url": moderation.url}
        tell(flow(home, model, guardrails=own), "You idiot")
    assert said[0] == (
        "[GUARDRAILS PRE] Message flagged and blocked: OpenAI Moderation: harassment"
    )
    [row] = store.decisions(limit=9)
    assert (row.reason, row.matched_rule, row.confidence) == (
        "OpenAI Moderation: harassment",
        "openai_moderation",
        0.87,
    )


def test_guardrail_post_removes_both_messages(
    home: Path, store: GuardrailStore, model: ModelServer, said: list[str]
) -> None:
    """Manual test 2 and the document's example of the context before and after."""
    with ModerationServer() as moderation:
        own = {"moderation_url": moderation.url}
        tell(flow(home, model, guardrails=own), ASKED)
        moderation.flags["named bus"] = {"hate": 0.7}
        [turn] = tell(flow(home, model, guardrails=own), "And this?")
    assert turn.error_message == "GUARDRAIL_POST_BLOCKED: Violates: hate"
    assert remembered(home) == [ASKED]
    assert said == [
        "[GUARDRAILS POST] Generated response flagged: Violates: hate",
        "[GUARDRAILS POST] Removing triggering user message from context",
        "[SILENT FAILURE] Post-guardrail blocked response for user user_123",
    ]


def test_4_retry_with_an_api_that_really_goes_down(
    home: Path, store: GuardrailStore, model: ModelServer, said: list[str]
) -> None:
    """Manual test 3: the first message is answered, then nobody listens any more."""
    waits = Seconds()

    async def run() -> Turn:
        async with flow(home, model, waits) as made:
            assert (await made.process("s1", ASKED, user_id="user_123")).response == DRAFT.response
            await asyncio.to_thread(model.close)
            return await made.process("s1", ASKED, user_id="user_123")

    turn = asyncio.run(run())
    assert (MAX_ATTEMPTS, RETRY_DELAY_S) == (3, 2)
    assert waits == [2.0, 4.0]
    assert (turn.should_respond, turn.retry_count) == (False, 3)
    why = turn.error_message or ""
    assert why.startswith("LLM_ERROR: ")
    cause = why.removeprefix("LLM_ERROR: ")
    assert said == [
        f"[LLM RETRY] Attempt 1/3 failed: {cause}",
        f"[LLM RETRY] Attempt 2/3 failed: {cause}",
        f"[LLM ERROR] Max retries (3) reached for user user_123: {cause}",
        f"[SILENT FAILURE] LLM error for user user_123: LLM_ERROR: {cause}",
    ]
    # Silence is no loss: the failure waits for a person, and the row knows which it is.
    [entry] = open_entries(home)
    assert store.decisions(limit=1)[0].snapshot_json["intervention_id"] == entry["id"]


@pytest.mark.parametrize("code", [429, 500, 502, 503])
def test_what_may_pass_is_tried_again(
    home: Path, store: GuardrailStore, model: ModelServer, said: list[str], code: int
) -> None:
    """Use cases 1 to 4; `Success on attempt 2/3` as in the document's second log."""
    answers = script(planner=[COMPLETE])
    model.script = answers | {"reflection": [status(code), answers["reflection"]]}
    waits = Seconds()
    [turn] = tell(flow(home, model, waits), ASKED)
    assert turn.response == DRAFT.response
    assert waits == [2.0]
    assert said[-1] == "[LLM RETRY] Success on attempt 2/3"


def test_6_and_7_messages_have_ids_are_added_once_and_removed_with_their_turn(
    home: Path, model: ModelServer, store: GuardrailStore
) -> None:
    """Manual test 4 and "the critical bug": with the real store, and across a restart."""
    [turn] = tell(flow(home, model), ASKED)
    ids = message_ids(turn)
    assert all(isinstance(each, uuid.UUID) for each in ids)
    path = home / "shared_state" / "sessions.sqlite3"
    first = SessionStore(path)
    first.save(turn)
    first.save(turn)
    assert remembered(home) == [ASKED]
    assert first.take_back(turn) == 2
    first.close()
    second = SessionStore(path)
    assert second.take_back(turn) == 0
    second.close()
    assert remembered(home) == []


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (
            ai_decisions,
            "user_id message_id decision confidence reason matched_rule message_text snapshot_json",
        ),
        (
            ai_rules,
            "user_id ai_control_enabled ai_enabled_for_chats ai_enabled_for_comments "
            "flagged_keywords flagged_phrases",
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_tables_have_the_documented_columns(table: sa.Table, columns: str) -> None:
    assert set(columns.split()) <= set(table.columns.keys())


def test_moderation_can_be_switched_off(
    home: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODERATION_ENABLED", "false")
    with ModerationServer({"topic": {"hate": 1.0}}) as moderation:
        own = {"moderation_url": moderation.url}
        [turn] = tell(flow(home, model, guardrails=own), ASKED)
        assert turn.should_respond
        assert moderation.requests == []


def test_bad_input_is_the_callers_to_see(home: Path, model: ModelServer) -> None:
    """No failure of the flow, and so nothing to be silent about."""
    with pytest.raises(InputError):
        tell(flow(home, model), "   ")
    assert not (home / "shared_state" / "turns").exists() or started_phases(home) == []
