"""One cause, many turns: `interventions retry ID --all`."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from interventions.retry import retries
from interventions.retry.retries import waiting_turns
from tests import forked, in_process
from tests.answers import (
    COMPLETE,
    QUESTION,
    Turns,
    every_phase_by_model,
    open_entries,
    script,
    served_flow,
)
from tests.servers.model_server import Connection, ModelServer, answer, status
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError

pytestmark = every_phase_by_model

TURNS = 14
PATIENCE_S = 240.0


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
    done = in_process.run("interventions", "retry", name, "--all", "--json", home=home)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(home: Path, name: str) -> str:
    done = in_process.run("interventions", "retry", name, "--all", home=home)
    assert done.returncode == 5
    return done.stderr


def to_go_on(err: str) -> str:
    """The entry that the hint names."""
    return err.rpartition("to go on: interventions retry ")[2].split()[0]


def statuses(home: Path) -> list[str]:
    turns, _ = Turns(home).latest()
    return [turn.status for turn in turns]


def test_an_entry_knows_every_turn_that_it_blocks(home: Path, failed: str) -> None:
    (counting,) = (entry for entry in open_entries(home) if entry.get("turns"))
    shown = in_process.run("interventions", "show", counting["id"], home=home)
    assert f"it blocks turns {counting['turns'][0]} to {TURNS} too" in shown.stdout
    queue = InterventionQueue(home)
    turns = waiting_turns(queue.find(failed), queue.entries())
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
    # Nor if it gets past its phase and fails in a later one, on which the others would fail too.
    model_server.script = script(validation=status(500))
    (told_later,) = retry(home, failed, 1)["failed"]
    assert "then failed in validation (intervention " in told_later["what"]
    assert model_server.phases[asked:] == ["synthesis", "synthesis", "validation"]
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
    assert "is closed" in refused(home, failed)
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


@pytest.fixture
def held(model_server: ModelServer) -> Iterator[threading.Event]:
    """The server answers the turn that goes first, and the others once this is set."""
    let_go = threading.Event()
    calls = itertools.count()

    def synthesis(connection: Connection) -> None:
        if next(calls):
            let_go.wait()
        answer(script()["synthesis"])(connection)

    model_server.script = script(synthesis=synthesis)
    yield let_go
    let_go.set()


JOBS = 2


IMPATIENT = f"""
from {retries.__package__} import retries
from interventions.__main__ import main
retries.PATIENCE_S = 0.1
main()
"""


@contextmanager
def interrupted(
    home: Path, name: str, server: ModelServer, program: tuple[str, ...] = ("-m", "interventions")
) -> Iterator[subprocess.Popen[str]]:
    """`retry --all` with a Ctrl-C while turns run at the same time, and what it says."""
    asked = server.phases.count("synthesis")
    process = forked.Process(
        [sys.executable, *program, "retry", name, "--all", "--jobs", str(JOBS)],
        env={**os.environ, "UNIFIED_FLOW_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    deadline = time.monotonic() + PATIENCE_S
    try:
        while server.phases.count("synthesis") < asked + 1 + JOBS:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        for line in process.stderr:
            if line.startswith("interrupted: waiting"):
                break
        yield process
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_brings_what_runs_to_its_end_and_the_next_run_does_the_rest(
    home: Path, failed: str, model_server: ModelServer, held: threading.Event
) -> None:
    asked = len(model_server.phases)
    with interrupted(home, failed, model_server) as process:
        held.set()
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert out == f"passed {1 + JOBS}, failed 0, skipped {TURNS - 1 - JOBS}\n"
    assert "skipped: it was interrupted" in err
    assert model_server.phases[asked:].count("synthesis") == 1 + JOBS
    again = retry(home, to_go_on(err), 0)
    assert len(again["passed"]) == TURNS - 1 - JOBS
    assert all("nothing left to do" in turn["what"] for turn in again["skipped"])
    assert model_server.phases[asked:].count("synthesis") == TURNS, "each turn once"
    assert statuses(home) == ["answered"] * TURNS
    assert all(entry["resolutions"][0]["verified"] for entry in open_entries(home))


def test_a_second_ctrl_c_waits_for_nothing_and_costs_only_what_had_no_answer(
    home: Path, failed: str, model_server: ModelServer, held: threading.Event
) -> None:
    asked = len(model_server.phases)
    with interrupted(home, failed, model_server) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert out == f"passed 1, failed 0, skipped {TURNS - 1}\n", err
    assert err.count("skipped: it was stopped while it ran") == JOBS
    held.set()
    again = retry(home, to_go_on(err), 0)
    assert len(again["passed"]) == TURNS - 1
    assert model_server.phases[asked:].count("synthesis") == TURNS + JOBS
    assert statuses(home) == ["answered"] * TURNS


def test_a_server_that_hangs_holds_up_no_ctrl_c(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(500), planner=COMPLETE)

    async def ask() -> None:
        patient = {"model": "m", "base_url": model_server.url, "timeout_s": 300.0}
        async with UnifiedFlow.from_config(home, docs=[docs], **patient) as flow:
            for number in range(4):
                with pytest.raises(PhaseError):
                    await flow.process(f"session {number}", QUESTION)

    asyncio.run(ask())
    let_go, calls = threading.Event(), itertools.count()

    def synthesis(connection: Connection) -> None:
        if next(calls):
            let_go.wait()
        answer(script()["synthesis"])(connection)

    model_server.script = script(synthesis=synthesis)
    try:
        name = str(open_entries(home)[0]["id"])
        with interrupted(home, name, model_server, ("-c", IMPATIENT)) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        let_go.set()
    assert process.returncode == 130
    assert out == "passed 1, failed 0, skipped 3\n"
    assert err.count("skipped: it was stopped while it ran") == JOBS
    assert sorted(statuses(home)) == ["answered", "failed", "interrupted", "interrupted"]
