"""An answered turn that is to go back to a phase stays as it is, and a fork of it goes on."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.answers import (
    APPROVE,
    COMPLETE,
    DRAFT,
    PROCEED,
    QUESTION,
    SEARCH,
    Turns,
    every_phase_by_model,
    journal_lines,
    open_entries,
    started_phases,
    verdict,
)
from tests.integration.test_resume import BROKEN, ask, asked, make, resume
from tests.integration.test_resume_upkeep import cli
from unified_flow.errors.turns import NotResumableError
from unified_flow.phases import NAMES
from unified_flow.resume import retention
from unified_flow.resume.replay.replay import replay
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.results import Plan, Reflection, ToolRequest
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn

pytestmark = every_phase_by_model

BETTER = DRAFT.model_copy(update={"response": "A topic is a bus."})


def answered(home: Path, docs: Path) -> tuple[Turn, dict[str, bytes]]:
    """An answered turn, and its files."""
    turn = ask(make(home, docs))
    assert isinstance(turn, Turn)
    return turn, files(home)


def files(home: Path, turn_id: int = 1) -> dict[str, bytes]:
    folder = Turns(home).path(turn_id)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_fork_is_a_turn_of_its_own_and_says_so(home: Path, docs: Path) -> None:
    old, before = answered(home, docs)
    flow = make(home, docs, synthesis=BETTER)
    resumed = resume(flow, from_phase="synthesis", by="ada")
    fork = resumed.turn
    assert (resumed.turn_id, fork.turn_id, fork.fork_of) == (2, 2, 1)
    assert (fork.response, fork.status, fork.saved) == ("A topic is a bus.", "answered", True)
    assert (fork.session_id, fork.question) == (old.session_id, old.question)
    assert fork.request_id != old.request_id
    assert asked(flow) == ["synthesis", "validation"]
    assert [v.phase for v in fork.visits] == [v.phase for v in old.visits]
    assert files(home) == before
    archive = Turns(home)
    assert (archive.require(1), archive.require(2)) == (old, fork)
    assert open_entries(home) == []
    listed = cli(home, "unified_flow", "turns", "list").stdout.splitlines()
    assert "answered, fork of 1" in listed[0]
    assert "fork" not in listed[1]
    assert "Fork of turn 1" in cli(home, "unified_flow", "turns", "show", "2").stdout
    shown = json.loads(cli(home, "unified_flow", "turns", "show", "2", "--json").stdout)
    assert shown["fork_of"] == 1


@pytest.mark.parametrize("phase", [name for name in NAMES if name != "save"])
def test_everything_from_the_phase_runs_and_nothing_before_it(
    phase: str, home: Path, docs: Path
) -> None:
    old, before = answered(home, docs)
    planned = [COMPLETE] if phase == "coordinator" else [SEARCH, COMPLETE]
    fork = resume(make(home, docs, planner=planned), from_phase=phase).turn
    whole = [*NAMES[:4], "coordinator", "planner", *NAMES[5:]]
    copied = json.dumps(journal_lines(home, 2)[0]["copied"])
    assert started_phases(home, 2) == whole[whole.index(phase) :]
    assert copied.count('"event": "phase_completed"') == whole.index(phase)
    assert written(fork.sections).keys() == written(old.sections).keys()
    assert fork.sections.context_gatherer == old.sections.context_gatherer, "it is no earlier turn"
    assert files(home) == before
    replayed = replay(Turns(home).events(2))
    assert replayed.same


def test_a_turn_that_had_gone_on_and_looped_and_a_fork_are_forked(home: Path, docs: Path) -> None:
    ask(make(home, docs, planner=BROKEN))
    resume(make(home, docs, validation=[verdict("REVISE"), APPROVE]), edited={})
    first = resume(make(home, docs, synthesis=BETTER), from_phase="synthesis").turn
    assert (first.turn_id, first.fork_of) == (2, 1)
    again = make(home, docs, planner=[COMPLETE])
    second = resume(again, 2, from_phase="planner").turn
    assert (second.turn_id, second.fork_of) == (3, 2)
    assert asked(again) == ["planner", "synthesis", "validation"]
    assert second.sections.coordinator == ()
    assert Turns(home).require(3) == second


def test_what_is_edited_is_edited_in_the_fork(home: Path, docs: Path) -> None:
    answered(home, docs)
    fork = resume(
        make(home, docs), from_phase="reflection", edited={"question": "What is a bus?"}
    ).turn
    assert (fork.question, Turns(home).require(1).question) == ("What is a bus?", QUESTION)


def test_a_question_back_is_forked_too(home: Path, docs: Path) -> None:
    back = Reflection(decision="CLARIFY", confidence=1.0, clarification_question="Which one?")
    ask(make(home, docs, reflection=back))
    fork = resume(make(home, docs, reflection=PROCEED), from_phase="reflection").turn
    assert (fork.turn_id, fork.status, fork.fork_of) == (2, "answered", 1)


def test_what_has_not_replied_goes_on_itself(home: Path, docs: Path) -> None:
    """Failed or given up: no reply stands that somebody may have read."""
    ask(make(home, docs, synthesis=BROKEN))
    resumed = resume(make(home, docs, validation=BROKEN), from_phase="planner")
    assert (resumed.turn_id, resumed.turn.fork_of) == (1, None)
    cli(home, "unified_flow", "turns", "abandon", "1")
    assert resume(make(home, docs), from_phase="synthesis").turn.turn_id == 1


def test_a_fork_that_fails_has_an_intervention_of_its_own_and_goes_on(
    home: Path, docs: Path
) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    (old,) = open_entries(home)
    resume(make(home, docs), note="mended")
    before = files(home)
    failed = resume(make(home, docs, planner=BROKEN), from_phase="planner", note="a better plan")
    assert (failed.failed, failed.turn_id) == (True, 2)
    entries = {entry["turn_id"]: entry for entry in open_entries(home)}
    assert entries[1]["id"] == old["id"]
    assert (entries[2]["phase"], entries[2]["resolved_at"]) == ("planner", None)
    resumed = resume(make(home, docs), 2, note="mended")
    assert (resumed.turn.fork_of, resumed.turn.status) == (1, "answered")
    assert resumed.closed == entries[2]["id"]
    assert files(home) == before


def test_a_fork_that_passes_the_phase_closes_what_its_turn_left_open(
    home: Path, docs: Path
) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    (entry,) = open_entries(home)
    resume(make(home, docs))  # without a note, others close it
    closed = resume(make(home, docs), from_phase="synthesis", note="n", intervention_id=entry["id"])
    assert (closed.turn_id, closed.closed) == (2, entry["id"])


class Word(Arguments):
    word: str


def test_a_tool_that_has_written_is_not_called_again_for_a_fork_unasked(
    home: Path, docs: Path
) -> None:
    done = list[str]()

    async def run(args: Word) -> ToolOutput:
        done.append(args.word)
        return ToolOutput("written")

    writer = Tool("note", "writes", Word, frozenset({Access.WRITES}), run)
    note = Plan(
        decision="EXECUTE",
        route="coordinator",
        tool_requests=[ToolRequest(tool="note", args={"word": "a"})],
    )
    planned = [note, COMPLETE]
    none = DRAFT.model_copy(update={"abstained": True, "citations": []})
    ask(make(home, docs, tools=[writer], planner=planned, synthesis=none))
    with pytest.raises(NotResumableError, match="note has written in turn 1"):
        resume(make(home, docs, tools=[writer], planner=planned), from_phase="planner")
    assert (Turns(home).ids(), done) == ([1], ["a"])
    resume(make(home, docs, tools=[writer], synthesis=none), from_phase="synthesis")
    assert done == ["a"]
    again = make(home, docs, tools=[writer], planner=planned, synthesis=none)
    resume(again, from_phase="planner", rerun_tools=True)
    assert done == ["a", "a"]


def test_the_command_says_what_it_does(home: Path, docs: Path) -> None:
    cli(home, "unified_flow", "ask", QUESTION, "--docs", docs)
    told = cli(home, "unified_flow", "resume", "1", "--from", "synthesis").stderr
    assert "turn 1 stays as it is; turn 2 is its fork" in told
    assert "turn 2 goes on at synthesis\n" in told
    as_json = cli(home, "unified_flow", "resume", "last", "--from", "synthesis", "--json").stdout
    assert (json.loads(as_json)["turn_id"], json.loads(as_json)["fork_of"]) == (3, 2)


def test_what_a_killed_process_left_of_a_large_fork_is_pruned(home: Path, docs: Path) -> None:
    """It had stored what the first line was to hold, and not written the line."""
    answered(home, docs)
    ask(make(home, docs))
    folder = Turns(home).path(2)
    for path in folder.iterdir():
        path.unlink()
    (folder / JOURNAL).touch()
    (folder / ("0" * 64)).write_bytes(b"[]")
    ask(make(home, docs))
    done = retention.delete(Turns(home).store, [], set, before=datetime(2100, 1, 1, tzinfo=UTC))
    asyncio.run(done)
    assert Turns(home).ids() == [1, 3]


def test_no_fork_begins_where_there_is_no_room(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, before = answered(home, docs)
    flow = make(home, docs)

    def full(path: Path, mode: int = 0o777) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", full)
        with pytest.raises(
            NotResumableError, match=r"no room for a fork of turn 1 .*No space left"
        ):
            resume(flow, from_phase="synthesis")
    assert files(home) == before
    assert Turns(home).ids() == [1]
