"""Resuming with real processes and a real model server whose own log says who asked it what."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.answers import (
    APPROVE,
    COMPLETE,
    QUESTION,
    SEARCH,
    Turns,
    every_phase_by_model,
    open_entries,
    script,
)
from tests.servers.model_server import Connection, ModelServer, answer, hang, status
from unified_flow.phases import NAMES
from unified_flow.turns.lock import JOURNAL

pytestmark = every_phase_by_model

ASKED = ["query_analyzer", "reflection", "planner", "planner", "synthesis", "validation"]
PATIENCE_S = 240.0


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.005)


class Cli:
    def __init__(self, home: Path) -> None:
        self.home = home

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        return forked.Process(
            [sys.executable, "-m", *map(str, words)],
            env={**os.environ, "UNIFIED_FLOW_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, (out, err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def cli(home: Path) -> Cli:
    return Cli(home)


def ask(docs: Path, server: ModelServer) -> list[str | Path]:
    served: list[str | Path] = ["--model", "m", "--base-url", server.url]
    return ["unified_flow", "ask", QUESTION, "--docs", docs, *served]


def test_the_story(cli: Cli, home: Path, docs: Path, model_server: ModelServer) -> None:
    """The server answers 500, is mended, and one command proves it and closes the entry."""
    model_server.script = script(synthesis=status(500))
    cli.run(*ask(docs, model_server), code=1)
    assert model_server.phases == ASKED[:5]
    (entry,) = open_entries(home)

    again = cli.run("interventions", "resolve", entry["id"], "-m", "mended", "--retry", code=1)
    told, _, failed = again.stderr.partition("failed again")
    assert "turn 1 goes on at synthesis\nchanged since it stopped: nothing" in told
    assert failed
    assert "the same error as before" in again.stderr
    assert (open_entries(home)[0]["occurrences"], open_entries(home)[0]["resolved_at"]) == (2, None)

    model_server.script = script()
    asked = len(model_server.phases)
    done = cli.run("interventions", "resolve", entry["id"], "-m", "restarted it", "--retry")
    assert f"resolved {entry['id']}" in done.stdout
    assert model_server.phases[asked:] == ["synthesis", "validation"]
    (entry,) = open_entries(home)
    (row,) = entry["resolutions"]
    assert (row["note"], row["verified"], row["turn_status"]) == ("restarted it", True, "answered")
    shown = json.loads(cli.run("unified_flow", "turns", "show", "1", "--json").stdout)
    assert (shown["status"], shown["response"]) == ("answered", "A topic is a named bus.")

    nothing = cli.run("unified_flow", "resume", "1", code=2)
    assert "nothing left to do" in nothing.stderr
    assert len(model_server.phases) == asked + 2


def test_resume_says_what_it_does_and_answers(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(500))
    cli.run(*ask(docs, model_server), code=1)
    model_server.script = script()
    short = open_entries(home)[0]["id"].rpartition("_")[2]
    done = cli.run("unified_flow", "resume", short, "--note", "mended")
    answer, *_sources = done.stdout.splitlines()
    assert answer == "A topic is a named bus."
    assert "turn 1 goes on at synthesis" in done.stderr
    assert "changed since it stopped: nothing" in done.stderr
    assert f"resolved, verified: {short}" in done.stderr


def test_another_server_can_be_named(cli: Cli, home: Path, docs: Path) -> None:
    with ModelServer(script(synthesis=status(500))) as broken:
        cli.run(*ask(docs, broken), code=1)
    with ModelServer(script()) as other:
        done = cli.run("unified_flow", "resume", "1", "--base-url", other.url, "--json")
        assert other.phases == ["synthesis", "validation"]
    outcome = json.loads(done.stdout)
    assert (outcome["status"], outcome["resumed_at"]) == ("answered", "synthesis")
    assert outcome["changed"] == ["configuration"]


def test_retry_tells_of_a_later_failure(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(500))
    cli.run(*ask(docs, model_server), code=1)
    model_server.script = script(validation=status(503))
    (old,) = open_entries(home)
    done = cli.run("interventions", "retry", old["id"], "--json", code=1)
    told = json.loads(done.stdout)
    assert (told["resolved"], told["result"]["phase"]) == (True, "validation")
    old, new = open_entries(home)
    assert (old["resolutions"][0]["verified"], new["phase"]) == (True, "validation")


def take(path: Path) -> Callable[[], None]:
    """Write to a database and do not commit, until the answer is called."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")

    def let_go() -> None:
        connection.rollback()
        connection.close()

    return let_go


Held = list[Callable[[], None]]
MANY = 800


def hold(phase: str, home: Path, server: ModelServer, held: Held) -> Callable[[], object]:
    """Make the turn stay in `phase`; the condition is true once it is there."""
    if phase == "context_gatherer":
        memory = home / "shared_state/memory/default.jsonl"
        memory.parent.mkdir(parents=True)
        os.mkfifo(memory)
        held.append(memory.unlink)
        server.script = script()
        return lambda: "phase_completed reflection" in _journal(home)
    if phase == "coordinator":
        many = SEARCH.model_copy(update={"tool_requests": SEARCH.tool_requests * MANY})
        server.script = script(planner=[many, COMPLETE])
        return lambda: "tool_completed coordinator" in _journal(home)
    if phase == "save":

        def lock(connection: Connection) -> None:
            held.append(take(home / "shared_state/sessions.sqlite3"))
            answer(APPROVE)(connection)

        server.script = script(validation=lock)
        return lambda: "phase_completed validation" in _journal(home)
    server.script = script(**{phase: hang()})
    return lambda: phase in server.phases


def _journal(home: Path) -> list[str]:
    """What happened so far, as "event phase"."""
    path = home / "shared_state/turns/turn_000001" / JOURNAL
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [f"{line['event']} {line.get('phase')}" for line in map(json.loads, lines)]


@pytest.fixture
def held() -> Iterator[Held]:
    found: Held = []
    yield found
    for let_go in found:
        let_go()


@pytest.mark.parametrize("phase", NAMES)
def test_killed_in_a_phase(
    phase: str, cli: Cli, home: Path, docs: Path, model_server: ModelServer, held: Held
) -> None:
    there = hold(phase, home, model_server, held)
    process = cli.start(*ask(docs, model_server))
    wait_for(there, f"the turn comes to {phase}")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    while held:
        held.pop()()
    first_plan = NAMES.index(phase) <= NAMES.index("planner")
    model_server.script = script() if first_plan else script(planner=COMPLETE)

    turns, _ = Turns(home).latest(interrupted=True)
    assert [turn.turn_id for turn in turns] == [1]
    completed = set(turns[0].tools_done)
    asked, before = len(model_server.phases), len(_journal(home))
    outcome = json.loads(cli.run("unified_flow", "resume", "1", "--json").stdout)
    assert (outcome["status"], outcome["saved"]) == ("answered", True)
    assert model_server.phases[asked:] == {
        "context_gatherer": ASKED[2:],
        "coordinator": ASKED[3:],
        "save": [],
    }.get(phase, ASKED[ASKED.index(phase) if phase in ASKED else 0 :])
    again = [line for line in _journal(home)[before:] if line.startswith("tool_started")]
    assert len(again) == {"coordinator": MANY - len(completed)}.get(phase, int(first_plan))
    assert open_entries(home) == []
    assert Turns(home).latest(interrupted=True) == ([], {})


def test_a_killed_turn_is_listed_as_interrupted_and_a_running_one_is_not(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=hang())
    process = cli.start(*ask(docs, model_server))
    wait_for(lambda: "synthesis" in model_server.phases, "the turn comes to synthesis")
    listed = json.loads(cli.run("unified_flow", "turns", "list", "--json").stdout)
    assert listed["turns"][0]["status"] == "running"
    assert "1" not in cli.run("unified_flow", "turns", "list", "--status", "interrupted").stdout
    process.send_signal(signal.SIGKILL)
    process.communicate()
    shown = cli.run("unified_flow", "turns", "list", "--status", "interrupted").stdout
    assert "interrupted in synthesis" in shown


def test_ctrl_c(cli: Cli, home: Path, docs: Path, model_server: ModelServer) -> None:
    model_server.script = script(synthesis=hang())
    process = cli.start(*ask(docs, model_server))
    wait_for(lambda: "synthesis" in model_server.phases, "the turn comes to synthesis")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert "turn_interrupted synthesis" in _journal(home)
    model_server.script = script()
    assert "named bus" in cli.run("unified_flow", "resume", "1").stdout
    assert open_entries(home) == []


def test_two_people(cli: Cli, home: Path, docs: Path, model_server: ModelServer) -> None:
    """The second is refused; when the first is killed, nothing keeps the second out."""
    model_server.script = script(synthesis=status(500))
    cli.run(*ask(docs, model_server), code=1)
    model_server.script = script(synthesis=hang())
    asked = len(model_server.phases)
    first = cli.start("unified_flow", "resume", "1")
    wait_for(lambda: len(model_server.phases) > asked, "the first one is in synthesis")
    (entry,) = open_entries(home)
    for words in (
        ["unified_flow", "resume", "1"],
        ["interventions", "retry", entry["id"]],
        ["interventions", "resolve", entry["id"], "-m", "x", "--retry"],
    ):
        refused = cli.run(*words, code=5)
        assert f"process {first.pid} since 20" in refused.stderr
    first.send_signal(signal.SIGKILL)
    first.communicate()
    model_server.script = script()
    cli.run("interventions", "retry", entry["id"])
    assert open_entries(home)[0]["resolutions"][0]["verified"] is True
