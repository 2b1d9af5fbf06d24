"""What the monitor learns of turns, through the entry point that it looks for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interventions.errors import QueueError
from interventions.retry.contract import TurnReader, find_turn_reader
from tests.answers import DRAFT, QUESTION, scripted_flow
from unified_flow.flow import UnifiedFlow
from unified_flow.phases import NAMES
from unified_flow.phases.errors import QueryAnalyzerError, SynthesisError
from unified_flow.phases.recipe import PACKAGED
from unified_flow.resume.resumption import ResumeRequest, resume_turn
from unified_flow.turns.lock import JOURNAL
from unified_flow.wiring import wire


@pytest.fixture
def reader() -> TurnReader:
    return find_turn_reader()


def test_a_running_turn_shows_its_phases(home: Path, docs: Path, reader: TurnReader) -> None:
    seen = []

    def look(call: object) -> object:
        seen.append(reader.turn(home, 1))
        return DRAFT

    asyncio.run(scripted_flow(home, docs, synthesis=look).process("s", QUESTION))
    (running,) = seen
    assert running is not None
    assert (running["status"], running["doing"]) == ("running", "synthesis (scripted)")
    ribbon = {step["name"]: step["status"] for step in running["ribbon"]}
    assert (ribbon["coordinator"], ribbon["synthesis"]) == ("completed", "running")
    done = reader.turn(home, 1)
    assert done is not None
    assert (done["status"], done["doing"]) == ("answered", "")
    last = running["steps"][-1]
    assert (last["name"], last["status"], last["duration_ms"]) == ("synthesis", "running", None)


def test_an_answered_turn_tells_its_answer_and_what_its_models_and_tools_did(
    home: Path, docs: Path, reader: TurnReader
) -> None:
    asyncio.run(scripted_flow(home, docs).process("s", QUESTION))
    turn = reader.turn(home, 1)
    assert turn is not None
    assert turn["answer"] == DRAFT.response
    assert turn["sources"][0].startswith("docs/robots.md:")
    steps = turn["steps"]
    assert {step["status"] for step in steps} == {"completed"}
    names = [step["name"] for step in steps if step["kind"] == "phase"]
    assert names == [*NAMES[:5], "planner 2", *NAMES[5:]]
    (tool,) = (step for step in steps if step["kind"] == "tool")
    assert tool["name"] == "doc.search"
    assert "query" in tool["text"]
    assert {step["name"] for step in steps if step["kind"] == "model"} == {"scripted"}


def test_a_resumed_turn_has_its_runs_one_after_the_other(
    home: Path, docs: Path, reader: TurnReader
) -> None:
    with pytest.raises(SynthesisError):
        asyncio.run(
            scripted_flow(home, docs, synthesis=RuntimeError("down")).process("s", QUESTION)
        )
    asyncio.run(resume_turn(scripted_flow(home, docs), 1, ResumeRequest(by="ada", via="test")))
    turn = reader.turn(home, 1)
    assert turn is not None
    kinds = [(step["kind"], step["status"]) for step in turn["steps"]]
    assert kinds.count(("phase", "failed")) == 1
    assert kinds.index(("run", "completed")) == kinds.index(("phase", "failed")) + 2


def test_the_latest_come_first_and_a_damaged_one_is_left_out(
    home: Path, docs: Path, reader: TurnReader
) -> None:
    for _ in range(3):
        asyncio.run(scripted_flow(home, docs).process("s", QUESTION))
    broken = scripted_flow(home, docs, synthesis=RuntimeError("down"))
    with pytest.raises(SynthesisError):
        asyncio.run(broken.process("s", QUESTION))
    journal = home / "shared_state/turns/turn_000002" / JOURNAL
    journal.write_text("no JSON\nat all\n")
    latest = reader.latest(home, 10)
    assert [turn["turn_id"] for turn in latest] in ([4, 3, 1], [4, 1, 3])
    # None runs, so they stand in the order of the times that the monitor shows.
    changed = [turn["changed_at"] for turn in latest]
    assert changed == sorted(changed, reverse=True)
    assert latest[0]["error"] == "RuntimeError: down"
    assert latest[0]["intervention_id"]
    assert reader.latest(home / "elsewhere", 10) == []
    assert reader.turn(home, 9) is None


def test_what_changed_since_a_turn_stopped(home: Path, docs: Path, reader: TurnReader) -> None:
    settings = home / "unified_flow.toml"
    settings.write_text('model = "m"\nbase_url = "http://127.0.0.1:9/v1"\n')
    with pytest.raises(QueryAnalyzerError):
        asyncio.run(UnifiedFlow(wire(home, docs=[docs])).process("s", QUESTION))
    assert not {"configuration", "recipe planner"} & set(reader.changes(home, 1))
    settings.write_text(settings.read_text().replace(":9", ":10"))
    recipe = home / "recipes" / "planner.md"
    recipe.parent.mkdir()
    recipe.write_text((PACKAGED / "planner.md").read_text() + "\nBe short.\n")
    assert {"configuration", "recipe planner"} <= set(reader.changes(home, 1))
    with pytest.raises(QueueError):
        reader.changes(home, 9)
