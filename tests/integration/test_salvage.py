"""A turn with a damaged journal is kept up to the damage, and goes on from there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.answers import (
    COMPLETE,
    DRAFT,
    Turns,
    every_phase_by_model,
    open_entries,
    started_phases,
)
from tests.integration.test_resume import BROKEN, ask, asked, make, resume
from tests.integration.test_resume_upkeep import cli
from unified_flow.errors.turns import NotResumableError
from unified_flow.lib.threads import wait_for
from unified_flow.resume.replay.replay import replay
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.turns.events import VERSION
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.results import Plan, ToolRequest

pytestmark = every_phase_by_model


def damaged(home: Path, mark: bytes, then: bytes = b"\0") -> tuple[Path, bytes]:
    """The journal with the first `mark` overwritten, and what it was then."""
    path = home / "shared_state/turns/turn_000001" / JOURNAL
    content = path.read_bytes()
    assert mark in content
    broken = content.replace(mark, then * len(mark), 1)
    path.write_bytes(broken)
    return path, broken


def test_a_damaged_turn_is_kept_up_to_the_damage_and_goes_on(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    (entry,) = open_entries(home)
    path, broken = damaged(home, b'"event":"phase_completed","phase":"context_gatherer"')
    told = cli(home, "unified_flow", "turns", "show", "1", code=1).stderr
    assert "hint: to keep what is before the damage: unified-flow turns salvage 1" in told
    refused = cli(home, "unified_flow", "resume", "1", "--model", "embedded", code=2).stderr
    assert "unified-flow turns salvage 1" in refused

    said = cli(home, "unified_flow", "turns", "salvage", "last")
    assert "turn 1 is kept up to line" in said.stdout
    assert ": reflection has completed" in said.stdout
    assert "next: unified-flow resume 1" in said.stderr
    (aside,) = path.parent.glob("damaged_*.jsonl")
    *kept, last = path.read_bytes().splitlines(keepends=True)
    assert b"".join(kept) + aside.read_bytes() == broken
    assert aside.stat().st_mode & 0o777 == 0o600
    assert json.loads(last)["aside"] == aside.name
    page = cli(home, "unified_flow", "turns", "show", "1").stdout
    assert re.search(rf"Salvaged by \S+: \d+ damaged lines are in {aside.name}", page)
    (row,) = json.loads(cli(home, "unified_flow", "turns", "list", "--json").stdout)["turns"]
    assert row["status"] == "interrupted"

    flow = make(home, docs)
    resumed = resume(flow, note="mended", intervention_id=entry["id"])
    assert (resumed.turn.status, resumed.closed) == ("answered", entry["id"])
    assert started_phases(home)[2:4] == ["context_gatherer"] * 2
    assert asked(flow) == ["planner", "planner", "synthesis", "validation"]
    assert replay(Turns(home).events(1)).same


def test_as_json(home: Path, docs: Path) -> None:
    ask(make(home, docs))
    path, broken = damaged(home, b'"event":"phase_started","phase":"validation"')
    told = json.loads(cli(home, "unified_flow", "turns", "salvage", "1", "--json").stdout)
    assert told["turn_id"], told["status"] == (1, "interrupted")
    assert told["kept_lines"] + told["set_aside_lines"] == broken.count(b"\n")
    assert Path(told["aside"]).parent == path.parent


def test_lines_that_are_whole_and_in_a_wrong_place_are_set_aside(home: Path, docs: Path) -> None:
    ask(make(home, docs))
    path = home / "shared_state/turns/turn_000001" / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    assert Turns(home).salvage(1)[0] == 6
    assert resume(make(home, docs)).turn.status == "answered"


def test_what_cannot_be_salvaged_stays_as_it_is(home: Path, docs: Path) -> None:
    ask(make(home, docs))
    turns = Turns(home)
    path = turns.journal(1)
    whole = path.read_bytes()
    first, rest = whole.split(b"\n", 1)
    version = b'"version":%d' % VERSION
    for content, error, told in (
        (whole, NotResumableError, "nothing in .* is damaged"),
        (whole + b'{"torn', NotResumableError, "nothing in .* is damaged"),
        (first.replace(b"topic", b"tonic") + b"\n" + rest, NotResumableError, "first line is dam"),
        (rest, NotResumableError, "the first line is damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(error, match=told):
            turns.salvage(1)
        assert path.read_bytes() == content
    assert version in first
    cli(home, "unified_flow", "turns", "salvage", "7", code=3)
    path.write_bytes(whole)
    running = turns.open(1)
    assert (
        "turn 1 is being run by"
        in cli(home, "unified_flow", "turns", "salvage", "1", code=5).stderr
    )
    wait_for(running.lease.release())


class Word(Arguments):
    word: str


def write_of(home: Path, docs: Path, done: list[str], **over: object) -> object:
    async def run(args: Word) -> ToolOutput:
        done.append(args.word)
        return ToolOutput("written")

    writer = Tool("note", "writes", Word, frozenset({Access.WRITES}), run)
    note = Plan(
        decision="EXECUTE",
        route="coordinator",
        tool_requests=[ToolRequest(tool="note", args={"word": "a"})],
    )
    none = DRAFT.model_copy(update={"abstained": True, "citations": []})
    scripted = {"planner": [note, COMPLETE], "synthesis": none, **over}
    return make(home, docs, tools=[writer], **scripted)


@pytest.mark.parametrize(
    "mark",
    [
        b'"event":"tool_started"',
        b'"access":["writes"]',
        b'"writes"',
        b'"tool":"note"',
        b'"event":"phase_started","phase":"coordinator"',
        b'"event":"phase_completed","phase":"planner"',
        b'"event":"phase_completed","phase":"reflection"',
    ],
)
def test_a_call_that_may_have_written_is_not_made_again_unasked(
    mark: bytes, home: Path, docs: Path
) -> None:
    done = list[str]()
    ask(write_of(home, docs, done))
    damaged(home, mark, b"\1")
    said = cli(home, "unified_flow", "turns", "salvage", "1").stderr
    assert "may have written in them: look whether it did" in said
    with pytest.raises(NotResumableError, match="had begun to write when turn 1 stopped"):
        resume(write_of(home, docs, done))
    assert done == ["a"]
    assert resume(write_of(home, docs, done), rerun_tools=True).turn.status == "answered"
    assert len(done) > 1


def test_a_call_of_the_plan_that_stands_counts_as_done(home: Path, docs: Path) -> None:
    done = list[str]()
    ask(write_of(home, docs, done))
    damaged(home, b'"event":"phase_started","phase":"coordinator"')
    Turns(home).salvage(1)
    resumed = resume(write_of(home, docs, done, planner=COMPLETE), tools_done=True)
    assert (resumed.turn.status, done) == ("answered", ["a"])


def test_a_call_whose_plan_is_lost_cannot_count_as_done(home: Path, docs: Path) -> None:
    done = list[str]()
    ask(write_of(home, docs, done))
    damaged(home, b'"event":"phase_completed","phase":"planner"')
    Turns(home).salvage(1)
    with pytest.raises(NotResumableError) as refused:
        resume(write_of(home, docs, done), tools_done=True)
    assert "--tools-done" not in str(refused.value.hint)
