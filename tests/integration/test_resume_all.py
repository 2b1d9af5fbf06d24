"""One cause, many turns: `interventions retry ID --all`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from interventions.retrying import waiting
from tests.answers import COMPLETE, QUESTION, open_entries, script, served_flow
from tests.servers.model_server import Connection, ModelServer, answer, status
from unified_flow.archive import TurnArchive
from unified_flow.errors import PhaseError

TURNS = 14


@pytest.fixture
def failed(home: Path, docs: Path, model_server: ModelServer) -> str:
    """The id of an entry whose cause stopped many turns: some have an entry, some are counted."""
    model_server.script = script(synthesis=status(500), planner=COMPLETE)

    async def ask() -> None:
        async with served_flow(home, model_server.url, docs) as flow:
            for number in range(TURNS):
                with pytest.raises(PhaseError):
                    await flow.process(f"session {number}", QUESTION)

    asyncio.run(ask())
    entries = open_entries(home)
    assert len(entries) == 10, "the rest is counted"
    return str(entries[0]["id"])


def retry(home: Path, name: str, code: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "interventions", "retry", name, "--all", "--json"],
        env={**os.environ, "UNIFIED_FLOW_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def statuses(home: Path) -> list[str]:
    turns, _ = TurnArchive.of(home).latest(None, None)
    return [turn.status for turn in turns]


def test_an_entry_knows_every_turn_that_it_blocks(home: Path, failed: str) -> None:
    queue = InterventionQueue(home)
    turns = waiting(queue.find(failed), queue.entries())
    assert sorted(turn.turn_id for turn in turns) == list(range(1, TURNS + 1))
    assert turns[0].turn_id == 1


def test_one_first_and_if_it_fails_no_other(
    home: Path, failed: str, model_server: ModelServer
) -> None:
    asked = len(model_server.phases)
    told = retry(home, failed, 1)
    assert model_server.phases[asked:] == ["synthesis"]
    assert [turn["turn_id"] for turn in told["failed"]] == [1]
    assert len(told["skipped"]) == TURNS - 1
    assert statuses(home) == ["failed"] * TURNS


def test_all_pass_and_are_resolved_and_again_does_nothing(
    home: Path, failed: str, model_server: ModelServer
) -> None:
    model_server.script = script()
    asked = len(model_server.phases)
    told = retry(home, failed, 0)
    assert len(told["passed"]) == TURNS
    assert sorted(model_server.phases[asked:]) == ["synthesis"] * TURNS + ["validation"] * TURNS
    assert statuses(home) == ["answered"] * TURNS
    assert all(entry["resolutions"][0]["verified"] for entry in open_entries(home))
    again = retry(home, failed, 0)
    assert (again["passed"], again["failed"]) == ([], [])
    assert len(model_server.phases) == asked + 2 * TURNS


def test_what_a_broken_off_run_left_is_done_by_the_next(
    home: Path, failed: str, model_server: ModelServer
) -> None:
    """The server falls over in the middle; what it had answered is not asked again."""
    calls = 0

    def five(connection: Connection) -> None:
        nonlocal calls
        calls += 1
        good = calls <= 5
        (answer(script()["synthesis"]) if good else status(500))(connection)

    model_server.script = script(synthesis=five)
    first = retry(home, failed, 1)
    assert len(first["passed"]) == 5
    assert len(first["failed"]) == TURNS - 5
    model_server.script = script()
    asked = len(model_server.phases)
    left = [entry["id"] for entry in open_entries(home) if not entry["resolved_at"]]
    told = retry(home, left[0], 0)
    assert len(told["passed"]) == TURNS - 5
    assert model_server.phases[asked:].count("synthesis") == TURNS - 5
    assert statuses(home) == ["answered"] * TURNS
