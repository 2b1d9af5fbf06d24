"""A turn again from its journal: the same without network, other when the code is other."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interventions.entry import short_id
from tests import forked, in_process
from tests.answers import (
    APPROVE,
    COMPLETE,
    DRAFT,
    QUESTION,
    SEARCH,
    Turns,
    both_homes,
    every_phase_by_model,
    open_entries,
    script,
    scripted_flow,
    served_flow,
    verdict,
)
from tests.servers.model_server import ModelServer, status
from unified_flow.flow import UnifiedFlow
from unified_flow.models.scripted import ScriptedModel
from unified_flow.phases import NAMES
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.replay.replay import replay
from unified_flow.resume.resumption import resume_turn
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.journal import read
from unified_flow.turns.results import ToolRequest

# As pytest runs where nothing is kept, and those plugins are not loaded that take long to.
WITHOUT = ("-p", "no:cacheprovider", "-p", "no:schemathesis")
TWO_SEARCHES = SEARCH.model_copy(
    update={
        "tool_requests": [
            ToolRequest(tool="doc.search", args={"query": "service"}, goal_id="g2"),
            *SEARCH.tool_requests,
        ]
    }
)
LOOPS: dict[str, dict[str, Any]] = {
    "straight": {},
    "two rounds": {"planner": [SEARCH, SEARCH, COMPLETE]},
    "revise": {"validation": [verdict("REVISE"), APPROVE]},
    "retry": {
        "validation": [verdict("RETRY"), APPROVE],
        "planner": [SEARCH, COMPLETE, SEARCH, COMPLETE],
    },
    "not JSON": {"synthesis": "I think so"},
    "rejected": {"validation": verdict("FAIL")},
    "model down": {"reflection": RuntimeError("down")},
    "planning limit": {"planner": SEARCH},
    "a question back": {
        "reflection": {"decision": "CLARIFY", "confidence": 1, "clarification_question": "Which?"}
    },
}


def ran(home: Path, docs: Path, **over: Any) -> tuple[UnifiedFlow, list[AnyEvent]]:
    flow = scripted_flow(home, docs, **over)
    with suppress(PhaseError):
        asyncio.run(flow.process("s", QUESTION))
    return flow, journal_of(home)


def journal_of(home: Path) -> list[AnyEvent]:
    return Turns(home).events(1)


@both_homes
@every_phase_by_model
@pytest.mark.parametrize("loop", LOOPS)
def test_the_same_again(loop: str, home: Path, docs: Path) -> None:
    flow, journal = ran(home, docs, **LOOPS[loop])
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file()}
    again = replay(journal, real=flow.services)
    assert again.same
    assert not any(visit.asked_otherwise for visit in again.visits), again
    assert replay(journal).same
    after = {path: path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file()}
    assert after == before, "a replay leaves no trace"


def test_a_replay_has_the_settings_of_the_flow(home: Path, docs: Path) -> None:
    """Here, that the model decides what rules decide by default."""
    flow, journal = ran(home, docs)
    assert replay(journal, real=flow.services).same


def test_replays_in_threads_leave_the_logger_as_it_was(
    home: Path, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The failures that are played are nobody's news; those of others are."""
    _, journal = ran(home, docs, **LOOPS["model down"])
    caplog.clear()
    logger = logging.getLogger("unified_flow")
    together = threading.Barrier(4)

    def again(_: int) -> bool:
        together.wait()
        return replay(journal).same

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(again, range(4))) == [True] * 4
    assert caplog.records == []
    logger.error("a failure after them")
    assert [record.getMessage() for record in caplog.records] == ["a failure after them"]


def test_without_network(
    home: Path, docs: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.script = script()

    async def ask() -> None:
        async with served_flow(home, model_server.url, docs) as flow:
            await flow.process("s", QUESTION)

    asyncio.run(ask())

    def refused(*args: object) -> None:
        raise AssertionError("a replay connects to nothing")

    monkeypatch.setattr(socket.socket, "connect", refused)
    assert replay(journal_of(home)).same


@both_homes
def test_a_turn_that_was_resumed_replays_as_it_ended(home: Path, docs: Path) -> None:
    ran(home, docs, synthesis=RuntimeError("down"))
    flow = scripted_flow(home, docs, planner=[SEARCH, COMPLETE])
    asyncio.run(resume_turn(flow, 1, ResumeRequest(from_phase="coordinator")))
    replayed = replay(journal_of(home))
    assert replayed.failure is None
    assert replayed.same
    assert [visit.phase for visit in replayed.visits].count("save") == 1


RESUMED: dict[str, list[ResumeRequest]] = {
    "edited where it failed": [
        ResumeRequest(edited={"question": "What is a named bus?"}),
    ],
    "another plan": [
        ResumeRequest(
            from_phase="coordinator",
            edited={"planner": TWO_SEARCHES.model_dump()},
        ),
    ],
    "edited, then gone back before it": [
        ResumeRequest(edited={"question": "Why?"}),
        ResumeRequest(from_phase="planner"),
    ],
    "edited twice": [
        ResumeRequest(edited={"question": "Why?"}),
        ResumeRequest(from_phase="synthesis", edited={"question": "How?"}),
    ],
}


@both_homes
@every_phase_by_model
@pytest.mark.parametrize("how", RESUMED)
def test_an_edited_turn_replays_as_it_ended(how: str, home: Path, docs: Path) -> None:
    ran(home, docs, synthesis=RuntimeError("down"))
    for wanted in RESUMED[how]:
        plans = COMPLETE if "plan" in how else [SEARCH, COMPLETE]
        flow = scripted_flow(home, docs, planner=plans)
        resumed = asyncio.run(resume_turn(flow, 1, wanted))
        assert resumed.turn.status == "answered"
    again = replay(journal_of(home), real=flow.services)
    assert again.same, again
    assert not any(visit.asked_otherwise for visit in again.visits), again


@both_homes
def test_a_limit_reached_again_after_a_resumption_is_reached_in_the_replay(
    home: Path, docs: Path
) -> None:
    ran(home, docs, planner=SEARCH)
    asyncio.run(resume_turn(scripted_flow(home, docs, planner=SEARCH), 1, ResumeRequest()))
    again = replay(journal_of(home))
    assert [visit.phase for visit in again.visits].count("planner") == 10 + 1
    assert again.same


def test_a_limit_of_its_own_configuration_is_played_whatever_its_error_says(
    home: Path, docs: Path
) -> None:
    (home / "unified_flow.toml").write_text("[limits]\nplanning_loop = 2\n")
    ran(home, docs, planner=SEARCH)
    events = list(read(home / "shared_state/turns/turn_000001"))
    said = {"error_message": "said in other words"}
    reworded = [e.model_copy(update=said) if e.event == "phase_failed" else e for e in events]
    again = replay(reworded)
    assert again.failure is not None
    assert again.failure.error_type == "LoopLimitError"
    assert sum(visit.phase == "planner" and visit.same for visit in again.visits) == 3


def test_what_the_session_knew_is_in_the_journal(home: Path, docs: Path) -> None:
    """The turn before it is saved after it has begun: neither resume nor replay takes note."""
    asyncio.run(scripted_flow(home, docs).process("s", "What is a service?"))
    late = scripted_flow(home, docs, synthesis=RuntimeError("down"))
    with suppress(PhaseError):
        asyncio.run(late.process("s", "What is an action?"))
    third = scripted_flow(home, docs, query_analyzer=RuntimeError("down"))
    with suppress(PhaseError):
        asyncio.run(third.process("s", QUESTION))
    asyncio.run(resume_turn(scripted_flow(home, docs, planner=COMPLETE), 2, ResumeRequest()))
    flow = scripted_flow(home, docs)
    asyncio.run(resume_turn(flow, 3, ResumeRequest()))
    model = flow.services.models.named("scripted")
    assert isinstance(model, ScriptedModel)
    told = model.calls[0].sections.history
    assert [(prior.turn_id, prior.question) for prior in told] == [(1, "What is a service?")]
    replayed = replay(Turns(home).events(3), real=flow.services)
    assert replayed.same
    assert not replayed.visits[0].asked_otherwise
    again = scripted_flow(home, docs)
    asyncio.run(resume_turn(again, 3, ResumeRequest(from_phase="query_analyzer")))
    model = again.services.models.named("scripted")
    assert isinstance(model, ScriptedModel)
    assert [prior.turn_id for prior in model.calls[0].sections.history] == [1, 2], "looked up anew"


@both_homes
def test_another_result_is_another_result(home: Path, docs: Path) -> None:
    _, journal = ran(home, docs)
    said = {"reply": DRAFT.model_copy(update={"response": "another"}).model_dump_json()}
    replayed = replay(
        event.model_copy(update=said)
        if event.event == "model_called" and event.phase == "synthesis"
        else event
        for event in journal
    )
    assert not replayed.same
    assert [v.phase for v in replayed.visits if not v.same] == ["synthesis"]


def cli(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return in_process.run(*words, home=home)


def test_on_the_command_line(home: Path, docs: Path, model_server: ModelServer) -> None:
    model_server.script = script()
    served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
    assert cli(home, "unified_flow", "ask", QUESTION, *served).returncode == 0
    asked = len(model_server.requests)
    done = cli(home, "unified_flow", "replay", "1", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["same"], told["asked_otherwise"]) == (0, True, [])
    assert {step["name"] for step in told["phases"]} == set(NAMES)
    (home / "recipes").mkdir()
    packaged = Path(__file__).parents[2] / "unified_flow/phases/recipes/validation.md"
    (home / "recipes/validation.md").write_text(packaged.read_text() + "\nBe strict.\n")
    changed = cli(home, "unified_flow", "replay", "1")
    assert "prompts that changed: validation (" in changed.stderr
    assert cli(home, "unified_flow", "replay", "77").returncode == 3
    assert len(model_server.requests) == asked


def test_a_failure_as_a_test_that_fails_until_it_is_mended(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    secret = "sk-planted-4f9a8c7b6d5e4f3a2b1c0d9e8f7a6b5c"
    ran(home, docs, synthesis=f"no JSON at all, but {secret}")
    (entry,) = open_entries(home)
    test = tmp_path / "elsewhere" / "test_regression.py"
    test.parent.mkdir()
    words = ("interventions", "export", short_id(entry["id"]), "--as", "pytest", "-o", test)
    assert cli(home, *words).returncode == 0
    text = test.read_text()
    assert secret not in text
    assert str(home) not in text

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", *WITHOUT, test.name]
        return forked.run(command, cwd=test.parent, capture_output=True, text=True, check=False)

    failing = run()
    assert failing.returncode == 1, failing.stdout
    assert "NotJSONError" in failing.stdout
    test.write_text(_answered(text, DRAFT.model_dump_json()))
    mended = run()
    assert mended.returncode == 0, mended.stdout


def _answered(text: str, reply: str) -> str:
    """The module as it would be had the model said `reply` in synthesis."""
    journal = exported_journal(text)
    (said,) = (e for e in journal if e["event"] == "model_called" and e["phase"] == "synthesis")
    said["reply"] = reply
    return with_journal(text, journal)


def exported_journal(text: str) -> list[dict[str, Any]]:
    found: dict[str, Any] = {}
    exec(text.partition("\n\n\ndef test_")[0], found)
    return list(json.loads(found["JOURNAL"]))


def with_journal(text: str, journal: list[dict[str, Any]]) -> str:
    head, _, test = text.partition("\n\n\ndef test_")
    return f"{head}\nJOURNAL = {json.dumps(journal)!r}\n\n\ndef test_{test}"


def run_alone(test: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *WITHOUT, test.name]
    return forked.run(
        command,
        cwd=test.parent,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_server_that_failed_is_no_test(home: Path, docs: Path, model_server: ModelServer) -> None:
    model_server.script = script(synthesis=status(500, "boom"))
    served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
    assert cli(home, "unified_flow", "ask", QUESTION, *served).returncode == 1
    asked = len(model_server.phases)
    _is_refused(home)
    assert len(model_server.phases) == asked


def test_a_tool_that_failed_is_no_test(home: Path, docs: Path) -> None:
    asks = SEARCH.tool_requests[0], ToolRequest(tool="file.read", args={"path": "late.md"})
    plan = SEARCH.model_copy(update={"tool_requests": list(asks)})
    ran(home, docs, planner=[plan, COMPLETE])
    _is_refused(home)


def test_a_store_that_failed_is_no_test(home: Path, docs: Path) -> None:
    (home / "shared_state/memory/default.jsonl").mkdir(parents=True)
    ran(home, docs)
    (entry,) = open_entries(home)
    assert entry["phase"] == "context_gatherer"
    _is_refused(home)


def _is_refused(home: Path) -> None:
    (entry,) = open_entries(home)
    refused = cli(home, "interventions", "export", entry["id"], "--as", "pytest")
    assert refused.returncode == 5
    assert "came from outside the flow" in refused.stderr
    assert f"interventions retry {short_id(entry['id'])}" in refused.stderr
