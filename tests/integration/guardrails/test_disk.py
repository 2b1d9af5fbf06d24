"""Silence and its record where a disk or a database takes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.answers import DRAFT, open_entries
from tests.integration.guardrails.conversing import (
    Waits,
    decided,
    flag,
    flow_at,
    remembered,
    say,
)
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.turns.turn import Turn


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


def test_a_failed_save_does_not_silence_the_answer(home: Path, rules: GuardrailStore) -> None:
    """Under `silent` too: the reply is moderated before it is saved, and nothing else failed."""
    flow = flow_at(home, Waits(), policy="silent")
    sessions = home / "shared_state" / "sessions.sqlite3"

    async def run() -> list[Turn]:
        async with flow:
            first = await flow.process("s1", "What is a topic?")
            with closing(sqlite3.connect(sessions)) as database:
                database.execute(
                    "CREATE TRIGGER full BEFORE INSERT ON messages"
                    " BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
                )
                database.commit()
            return [first, await flow.process("s1", "What is a service?")]

    turns = asyncio.run(run())
    assert [(turn.response, turn.should_respond) for turn in turns] == [(DRAFT.response, True)] * 2
    assert [turn.saved for turn in turns] == [True, False]
    assert [decision.outcome for decision in decided(rules)] == ["passed", "passed"]
    [entry] = open_entries(home)
    assert (entry["phase"], entry["turn_id"]) == ("save", 2)
    assert remembered(home) == ["What is a topic?"]


def test_rules_that_cannot_be_read_silence_and_are_told(home: Path) -> None:
    (home / "shared_state").mkdir()
    (home / "shared_state" / "guardrails.sqlite3").write_text("no database " * 100)
    [turn] = say(flow_at(home), "What is a topic?")
    assert turn.error_message == "GUARDRAIL_PRE_BLOCKED: The rules cannot be read"
    assert {entry["error_type"] for entry in open_entries(home)} == {"RetrievalError"}


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
    done = forked.run(
        [sys.executable, "-c", FULL_DISK, str(home)], capture_output=True, text=True, check=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["response"], answer["should_respond"]) for answer in said] == [("", False)] * 6
    assert "no turn can be begun" in said[0]["error_message"]
    assert said[2]["error_message"] == "ERROR: [Errno 27] File too large"
    # No file takes the failure, nor the decision: they are told on stderr, last of all.
    assert {"NoTurnError", "OSError", "RetrievalError"} == {
        json.loads(line)["error_type"] for line in done.stderr.splitlines() if line[0] == "{"
    }
