"""Turns given up, turns removed, interventions that nobody needs, and fixes that are known."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.answers import QUESTION, open_entries, script, scripted_flow
from tests.servers.model_server import ModelServer, status
from unified_flow.archive import TurnArchive
from unified_flow.errors import PhaseError
from unified_flow.journal import NAME
from unified_flow.resuming.run import Resumption, resume_turn

DOWN = RuntimeError("down")


def ask(home: Path, docs: Path, **over: Any) -> None:
    with suppress(PhaseError):
        asyncio.run(scripted_flow(home, docs, **over).process("s", QUESTION))


def cli(home: Path, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env={**os.environ, "UNIFIED_FLOW_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def test_an_abandoned_turn_says_so_everywhere_and_is_closed_in_bulk(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    cli(home, "unified_flow", "turns", "abandon", "1", "-m", "asked again")
    listed = cli(home, "interventions", "list").stdout
    assert "SUPERSEDED" in listed
    assert "turn 1 was abandoned by" in listed
    assert "abandoned" in cli(home, "unified_flow", "turns", "list").stdout
    cli(home, "unified_flow", "turns", "abandon", "1", code=2)
    cli(home, "unified_flow", "turns", "abandon", "9", code=3)
    refused = cli(home, "unified_flow", "resume", "1", "--model", "embedded", code=2)
    assert "--from synthesis" in refused.stderr
    cli(home, "interventions", "dismiss", "--query", "is:superseded", "--yes")
    assert open_entries(home)[0]["dismissed_at"]


def test_an_older_failure_of_a_turn_that_is_answered_is_superseded(home: Path, docs: Path) -> None:
    ask(home, docs, synthesis=DOWN)
    back = scripted_flow(home, docs, reflection=RuntimeError("down too"))
    asyncio.run(resume_turn(back, 1, Resumption(from_phase="reflection", note="n")))
    asyncio.run(resume_turn(scripted_flow(home, docs), 1, Resumption(note="mended")))
    old, new = open_entries(home)
    assert (old["phase"], old["resolved_at"]) == ("synthesis", None)
    assert "was resumed by" in old["superseded"]
    assert new["resolutions"][0]["verified"]


def test_prune_takes_only_what_is_finished_old_and_needed_by_nobody(home: Path, docs: Path) -> None:
    ask(home, docs)  # 1: answered
    ask(home, docs, synthesis=DOWN)  # 2: failed, its intervention is open
    ask(home, docs, reflection=DOWN)  # 3: abandoned, its intervention is dismissed
    ask(home, docs)  # 4: answered, but fresh
    ask(home, docs)  # 5: the newest
    cli(home, "unified_flow", "turns", "abandon", "3")
    cli(home, "interventions", "dismiss", "--query", "is:superseded", "--yes")
    archive = TurnArchive.of(home)
    for turn_id in (1, 2, 3, 5):
        os.utime(archive.folders.path(turn_id) / NAME, (1, 1))
    would = json.loads(cli(home, "unified_flow", "turns", "prune", "--dry-run", "--json").stdout)
    assert would == {"turns": [1, 3], "removed": 0}
    cli(home, "unified_flow", "turns", "prune")
    assert archive.folders.ids() == [2, 4, 5]
    assert sorted(path.name[:5] for path in archive.folders.root.iterdir()) == ["turn_"] * 3
    ask(home, docs)
    assert archive.folders.ids()[-1] == 6


def test_the_card_tells_what_helped_before(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(500))
    served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
    cli(home, "unified_flow", "ask", QUESTION, *served, code=1)
    model_server.script = script()
    (entry,) = open_entries(home)
    cli(home, "interventions", "resolve", entry["id"], "-m", "restarted the server", "--retry")
    model_server.script = script(synthesis=status(500))
    again = cli(home, "unified_flow", "ask", QUESTION, *served, code=1)
    assert "resolved before: restarted the server (verified, " in again.stderr
    regression = open_entries(home)[-1]
    shown = cli(home, "interventions", "show", regression["id"]).stdout
    assert "(verified): restarted the server" in shown
