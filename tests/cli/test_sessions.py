"""`unified-flow sessions`: what was said, read, exported and deleted."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.answers import COMPLETE, scripted_flow
from unified_flow.cli.app import app
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.stores import grant_store
from unified_flow.tools.grants import Grant

runner = CliRunner()


def run(home: Path, *args: str, code: int = 0) -> Result:
    outcome = runner.invoke(app, ["sessions", *args, "--home", str(home)])
    assert outcome.exit_code == code, outcome.output
    return outcome


@pytest.fixture
def spoken(home: Path) -> Path:
    """Two sessions; one of them also holds a turn that failed."""

    async def talk() -> None:
        async with scripted_flow(home, planner=COMPLETE) as flow:
            await flow.process("ros", "What is a topic?")
            await flow.process("other", "What is a service?")
        async with scripted_flow(home, planner=COMPLETE, synthesis="not json") as flow:
            with pytest.raises(PhaseError):
                await flow.process("ros", "My password: hunter2-secret-9x. Why?")
        async with scripted_flow(home, planner=COMPLETE) as flow:
            await flow.process("last", "Is this the newest?")

    asyncio.run(talk())
    return home


def test_a_home_without_sessions_says_how_to_begin_one(home: Path) -> None:
    assert "unified-flow chat" in run(home, "list").stderr
    assert "sessions list" in run(home, "show", "ros", code=3).stderr


def test_the_list_is_newest_first_with_the_opening_question(spoken: Path) -> None:
    found = json.loads(run(spoken, "list", "--json").stdout)["sessions"]
    assert [(s["session_id"], s["turns"]) for s in found] == [
        ("last", 1),
        ("other", 1),
        ("ros", 1),
    ]
    assert found[2]["opening"] == "What is a topic?"
    assert "  1 turn   What is a topic?" in run(spoken, "list").stdout


def test_show_and_export_hold_the_failed_turn_and_no_secret(spoken: Path, tmp_path: Path) -> None:
    shown = run(spoken, "show", "ros").stdout
    assert "What is a topic?" in shown
    assert "failed at synthesis" in shown
    assert "hunter2" not in shown
    whole = json.loads(run(spoken, "show", "ros", "--json").stdout)
    assert [turn["status"] for turn in whole["unanswered"]] == ["failed"]
    target = tmp_path / "ros.md"
    run(spoken, "export", "ros", "-o", str(target))
    assert target.read_text().startswith("# Session ros\n\n## What is a topic?\n")
    assert "hunter2" not in target.read_text()


def test_an_export_replaces_a_file_only_if_told_to(spoken: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.md"
    target.write_text("my own words")
    refused = run(spoken, "export", "ros", "-o", str(target), code=2)
    assert "is there already" in refused.stderr
    assert "--force" in refused.stderr
    assert target.read_text() == "my own words"
    run(spoken, "export", "ros", "-o", str(target), "--force")
    assert target.read_text().startswith("# Session ros")
    assert target.stat().st_mode & 0o777 == 0o600
    for wrong, why in ((tmp_path, "is there already"), (tmp_path / "no" / "x.md", "No such file")):
        forced = ("export", "ros", "--force", "-o", str(wrong))
        assert why in run(spoken, *forced, code=2).stderr
    assert [path.name for path in tmp_path.glob("*.md")] == ["mine.md"]


@pytest.mark.parametrize("force", [["--force"], []])
def test_a_full_disk_leaves_the_file_that_was_there(
    spoken: Path, tmp_path: Path, force: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "mine.md"
    if force:
        target.write_text("my own words")
    left = list(tmp_path.iterdir())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = run(spoken, "export", "ros", "-o", str(target), *force, code=2)
    assert "No space left on device" in done.stderr
    assert list(tmp_path.iterdir()) == left
    assert not force or target.read_text() == "my own words"


def test_a_deleted_session_is_gone_but_for_what_an_open_intervention_needs(spoken: Path) -> None:
    refused = runner.invoke(app, ["sessions", "delete", "ros", "--home", str(spoken)])
    assert (refused.exit_code, "--yes" in refused.output) == (2, True)
    said = run(spoken, "delete", "ros", "--yes").stderr
    assert "deleted: 1 answer, 1 turn folder\n" in said
    assert "kept, as unfinished or needed: 1 turn\n" in said
    left = json.loads(run(spoken, "list", "--json").stdout)["sessions"]
    assert [s["session_id"] for s in left] == ["last", "other"]
    folders = {p.name for p in (spoken / "shared_state" / "turns").iterdir() if p.is_dir()}
    assert folders == {"turn_000002", "turn_000003", "turn_000004"}
    run(spoken, "delete", "ros", "--yes")
    assert {p.name for p in (spoken / "shared_state" / "turns").iterdir() if p.is_dir()} == folders


def test_the_newest_session_is_deleted_whole_and_its_number_stays_taken(home: Path) -> None:
    async def ask(question: str) -> int:
        async with scripted_flow(home, planner=COMPLETE) as flow:
            grant = Grant(tool="time.now", session_id="ros", by="ada")
            flow.services.gate.grants.add(grant)
            return (await flow.process("ros", question)).turn_id

    assert asyncio.run(ask("What is the purple elephant?")) == 1
    run(home, "delete", "ros", "--yes")
    run(home, "show", "ros", code=3)
    left = [path for path in (home / "shared_state").rglob("*") if path.is_file()]
    assert not [path for path in left if b"purple elephant" in path.read_bytes()]
    assert grant_store(home).all() == (), "a new session of that name inherits nothing"
    run(home, "delete", "ros", "--yes", code=3)
    assert asyncio.run(ask("And now?")) == 2


def test_a_question_is_text_in_an_export(home: Path) -> None:
    asked = "What is <script>alert(1)</script> [here](javascript:alert(1)) of `my_topic`?"

    async def ask() -> None:
        async with scripted_flow(home, planner=COMPLETE) as flow:
            await flow.process("ros", asked)

    asyncio.run(ask())
    heading = run(home, "export", "ros").stdout.splitlines()[2]
    assert heading == (
        r"## What is \<script>alert(1)\</script> \[here\](javascript:alert(1)) of \`my_topic\`?"
    )


def test_an_exported_quote_holds_no_secret(home: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Keys\n\nThe gizmo opens with password: hunter2-secret-9x.\n")

    async def ask() -> None:
        async with UnifiedFlow.from_config(home, docs=[docs]) as flow:
            turn = await flow.process("ros", "What does the gizmo open with?")
            assert "hunter2" in turn.citations[0].quote

    asyncio.run(ask())
    assert "hunter2" not in run(home, "export", "ros").stdout
