"""A turn whose process died is a failure that reaches a person once, and goes on like any other."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.answers import COMPLETE, PROCEED, Turns, every_phase_by_model, open_entries, script
from tests.api.service import Service, serving
from tests.concurrency.test_resume_processes import Cli, ask, cli, wait_for
from tests.servers.model_server import ModelServer, hang, status

__all__ = ["cli"]

pytestmark = every_phase_by_model

DIED = "the process that ran it died"


def killed_in(
    phase: str, cli: Cli, docs: Path, server: ModelServer, count: int = 1
) -> list[subprocess.Popen[str]]:
    """So many `ask`, each killed in that phase; they have died when this returns."""
    server.script = script(**{"planner": COMPLETE, phase: hang()})
    begun = server.phases.count(phase)
    running = [cli.start(*ask(docs, server)) for _ in range(count)]
    wait_for(lambda: server.phases.count(phase) == begun + count, f"all are in {phase}")
    for process in running:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    server.script = script(planner=COMPLETE)
    return running


def logged(home: Path) -> list[dict[str, Any]]:
    lines = (home / "logs/rag_queries.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["type"] == "ProcessDied"]


def about(entry: Any) -> list[int]:
    return [entry["turn_id"], *entry["turns"]]


def test_who_begins_next_tells_a_person_once_for_each_phase(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(
        planner=[hang(), COMPLETE, COMPLETE],
        synthesis=hang(),
        reflection=[PROCEED, PROCEED, PROCEED, hang()],
    )
    running = []
    for phase, calls in ("planner", 1), ("synthesis", 1), ("synthesis", 2), ("reflection", 4):
        running.append(cli.start(*ask(docs, model_server)))
        wait_for(lambda p=phase, n=calls: model_server.phases.count(p) == n, f"it is in {phase}")
    *dead, alive = running
    for process in dead:
        process.kill()
        process.communicate()
    model_server.script = script(planner=COMPLETE)
    told = cli.run(*ask(docs, model_server)).stderr
    alive.kill()
    alive.communicate()
    assert "warning: the process died that ran turn 1, 2, 3 (intervention" in told
    assert "to go on with what was cut off: unified-flow turns recover --all" in told

    entries = {entry["phase"]: entry for entry in open_entries(home)}
    assert sorted(entries) == ["planner", "synthesis"]
    assert about(entries["planner"]) == [1]
    assert about(entries["synthesis"]) == [2, 3]
    for entry in entries.values():
        assert (entry["error_type"], entry["severity"]) == ("ProcessDied", "high")
        assert entry["error_message"].startswith(DIED)
    lines = logged(home)
    assert sorted((line["turn_id"], line["status"], line["error"]) for line in lines) == [
        (number, "interrupted", True) for number in (1, 2, 3)
    ]
    assert {line["intervention_id"] for line in lines} == {e["id"] for e in entries.values()}
    # The one that has died since is told of alone.
    done = cli.run("unified_flow", "doctor", "--docs", docs, code=1)
    assert "✗ cut off: the process died that ran turn 4" in done.stdout
    assert "[" not in done.stderr, "no bare line of the log"
    assert "died" not in cli.run("unified_flow", "doctor", "--docs", docs).stdout
    assert len(logged(home)) == 4


def test_all_go_on_with_one_command(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    killed_in("synthesis", cli, docs, model_server, 3)
    listed = cli.run("unified_flow", "turns", "recover").stdout
    assert listed.count("cut off in synthesis") == 3
    asked = len(model_server.phases)
    model_server.script = script(planner=COMPLETE, synthesis=status(500))
    failed = cli.run("unified_flow", "turns", "recover", "--all", code=1)
    assert "passed 0, failed 1, skipped 2" in failed.stdout
    hint = "another first: unified-flow turns recover --all --canary 2"
    assert hint in failed.stderr
    model_server.script = script(planner=COMPLETE)
    asked = len(model_server.phases)
    done = cli.run("unified_flow", "turns", "recover", "--all", "--canary", "last", "--json")
    told = json.loads(done.stdout)
    assert [turn["turn_id"] for turn in told["passed"]] == [3, 2]
    assert model_server.phases[asked:] == ["synthesis", "validation"] * 2
    assert Turns(home).latest(interrupted=True) == ([], {})
    # Turn 1 has failed again, in the same phase: it waits there, and is the last.
    (entry,) = open_entries(home)
    assert (about(entry), entry["resolved_at"]) == ([1, 2, 3], None)
    cli.run("interventions", "retry", entry["id"])
    assert open_entries(home)[0]["resolutions"][0]["verified"] is True


def test_what_ctrl_c_has_stopped_needs_nobody_and_goes_on_too(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(planner=COMPLETE, synthesis=hang())
    process = cli.start(*ask(docs, model_server))
    wait_for(lambda: "synthesis" in model_server.phases, "the turn comes to synthesis")
    process.send_signal(signal.SIGINT)
    process.communicate()
    model_server.script = script(planner=COMPLETE)
    assert "cut off in synthesis" in cli.run("unified_flow", "turns", "recover").stdout
    assert open_entries(home) == []
    refused = cli.run("unified_flow", "turns", "recover", "--canary", "1", code=2)
    assert "use it with --all" in refused.stderr
    refused = cli.run("unified_flow", "resume", "--interrupted", "--model", "other", code=2)
    assert "go with --interrupted" in " ".join(refused.stderr.split())
    done = cli.run("unified_flow", "resume", "--interrupted", "--by", "ada")
    assert done.stdout == "passed 1, failed 0, skipped 0\n"
    assert "1/1 turn 1: passed: answered" in done.stderr
    shown = cli.run("unified_flow", "turns", "show", "1").stdout
    assert "Resumed at synthesis by ada" in shown
    assert "no turn was cut off" in cli.run("unified_flow", "resume", "--interrupted").stderr


def test_two_that_start_at_once_put_it_once(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    killed_in("synthesis", cli, docs, model_server, 3)
    both = [cli.start("unified_flow", "turns", "recover") for _ in range(2)]
    for process in both:
        process.communicate()
    (entry,) = open_entries(home)
    assert (about(entry), entry["occurrences"]) == ([1, 2, 3], 1)
    assert sorted(line["turn_id"] for line in logged(home)) == [1, 2, 3]


def test_one_turn_resumed_by_itself_closes_its_entry(
    cli: Cli, home: Path, docs: Path, model_server: ModelServer
) -> None:
    killed_in("synthesis", cli, docs, model_server)
    cli.run("unified_flow", "turns", "recover")
    cli.run("unified_flow", "resume", "1", "--note", "more memory")
    (entry,) = open_entries(home)
    assert (entry["resolution"], entry["resolutions"][0]["verified"]) == ("more memory", True)


def _asked_in_vain(service: Service, session: dict[str, str]) -> None:
    with suppress(httpx.TransportError):
        service.ask(**session)


@pytest.mark.parametrize("kept", [True, False])
def test_a_service_that_was_killed(
    kept: bool, home: Path, docs: Path, model_server: ModelServer
) -> None:
    """The next one tells of what it had left, and keeps even what is not kept until it is done."""
    model_server.script = script(planner=COMPLETE, synthesis=hang())
    flags = ("--model", "m", "--base-url", model_server.url)
    session = {"session_id": "s"} if kept else {}
    with serving(home, *flags, docs=docs) as service:
        asking = threading.Thread(target=_asked_in_vain, args=(service, session))
        asking.start()
        wait_for(lambda: "synthesis" in model_server.phases, "it is asked")
        service.stop(signal.SIGKILL)
        asking.join()
    model_server.script = script(planner=COMPLETE)
    with serving(home, *flags, docs=docs) as service:
        (entry,) = open_entries(home)
        assert (entry["error_type"], about(entry)) == ("ProcessDied", [1])
        assert entry["phase"] == ("synthesis" if kept else "query_analyzer")
        assert service.ask().status_code == 200  # the look at what is not needed any more
        assert 1 in Turns(home).ids()
        cli = Cli(home)
        cli.run("interventions", "retry", entry["id"], "--all")
    assert (1 in Turns(home).ids()) is kept
    assert open_entries(home)[0]["resolutions"][0]["verified"] is True
