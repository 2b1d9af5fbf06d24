"""Turns that are asked here and run by a worker, which is a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest
from typer.testing import CliRunner

from interventions.queue import queue_at
from tests.answers import DRAFT, QUESTION
from tests.api.service import Service, serving
from tests.forked import Process
from tests.servers.model_server import ModelServer, status
from tests.shared.conftest import LIMIT_S, Gate, StartWorker, script, wait_until, within
from unified_flow.cli.app import app
from unified_flow.engine.worker_dispatch import CHECK_S
from unified_flow.errors.turns import TurnStoppedError
from unified_flow.flow import UnifiedFlow
from unified_flow.phases import NAMES
from unified_flow.phases.errors import SynthesisError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.shared.database import Database
from unified_flow.stores import turn_archive
from unified_flow.turns.events import Observed

runner = CliRunner()


def test_a_worker_answers_what_is_asked_here(
    client: UnifiedFlow, start_worker: StartWorker, served_home: Path, database: Database
) -> None:
    worker = start_worker()
    seen: list[Observed] = []
    turn = asyncio.run(client.process("s", QUESTION, observer=seen.append))
    assert (turn.status, turn.response, turn.taken_over) == ("answered", DRAFT.response, 0)
    assert [e.phase for e in seen if e.event == "phase_completed"] == list(
        name for name in NAMES if name != "coordinator"
    )
    assert turn.runner is not None
    assert turn.runner.pid == worker.pid
    listed = runner.invoke(app, ["workers", "--json", "--home", str(served_home)])
    assert f"process {worker.pid}" in json.loads(listed.stdout)["workers"][0]["run_by"]
    shown = runner.invoke(app, ["turns", "show", "1", "--home", str(served_home)])
    assert QUESTION in shown.stdout
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(LIMIT_S) == 0
    assert wait_until(
        database,
        "SELECT count(*) = 0 FROM pg_stat_activity JOIN workers ON application_name = worker_id",
    )
    listed = runner.invoke(app, ["workers", "--home", str(served_home)])
    assert listed.stdout == "0 workers\n"
    resumed = runner.invoke(app, ["resume", "1", "--home", str(served_home)])
    assert "no worker takes turns" in resumed.stderr


def test_a_flow_that_was_closed_hears_of_its_next_turn(
    client: UnifiedFlow, start_worker: StartWorker
) -> None:
    start_worker()
    client.ask(QUESTION)
    sleep(2.0)  # it may still hear of something for a second
    asked = monotonic()
    client.ask(QUESTION)
    assert monotonic() - asked < CHECK_S


def test_a_failure_is_raised_here_and_retried_on_a_worker(
    client: UnifiedFlow, start_worker: StartWorker, model_server: ModelServer, served_home: Path
) -> None:
    """As on one machine: one intervention, and the phases before it are not run again."""
    start_worker()
    model_server.script = script(synthesis=status(500))
    with pytest.raises(SynthesisError) as failed:
        asyncio.run(client.process("s", QUESTION))
    assert failed.value.intervention_id is not None
    (entry,) = queue_at(served_home).entries()
    assert (entry["id"], entry["turn_id"]) == (failed.value.intervention_id, 1)
    before = model_server.phases
    model_server.script = script()
    resumed = asyncio.run(resume_turn(client, 1, ResumeRequest(note="plugged in")))
    assert (resumed.status, resumed.closed) == ("answered", entry["id"])
    assert model_server.phases[len(before) :] == ["synthesis", "validation"]


# As if the signal came just as the main thread begins to wait: nothing wakes it.
TOLD_IN_A_THREAD = """
import runpy, signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def pass_on():
    signal.sigwait([signal.SIGUSR1])
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=pass_on, daemon=True).start()
runpy.run_module("unified_flow", run_name="__main__", alter_sys=True)
"""


def test_a_worker_ends_also_if_sigterm_does_not_wake_it(start_worker: StartWorker) -> None:
    worker = start_worker(code=TOLD_IN_A_THREAD)
    sleep(0.2)  # it waits then
    worker.send_signal(signal.SIGUSR1)
    assert worker.wait(LIMIT_S) == 0


def test_a_retry_that_waits_for_a_worker_says_so(
    client: UnifiedFlow, start_worker: StartWorker, model_server: ModelServer, served_home: Path
) -> None:
    worker = start_worker()
    model_server.script = script(synthesis=status(500))
    with pytest.raises(SynthesisError):
        asyncio.run(client.process("s", QUESTION))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(LIMIT_S) == 0
    model_server.script = script()
    command = [sys.executable, "-m", "interventions", "retry", "last", "--home", str(served_home)]
    retrying = Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert retrying.stderr is not None
        assert "no worker takes turns" in retrying.stderr.readline()
        start_worker()
        said, _ = retrying.communicate(timeout=LIMIT_S)
        assert retrying.returncode == 0, said
    finally:
        retrying.kill()
        retrying.communicate()


def test_an_answered_turn_is_forked_for_a_worker(
    client: UnifiedFlow, start_worker: StartWorker, model_server: ModelServer
) -> None:
    start_worker()
    asyncio.run(client.process("s", QUESTION))
    before = len(model_server.phases)
    again = ResumeRequest(from_phase="synthesis")
    resumed = asyncio.run(resume_turn(client, 1, again))
    assert (resumed.turn_id, resumed.turn.fork_of, resumed.status) == (2, 1, "answered")
    assert model_server.phases[before:] == ["synthesis", "validation"]


def test_the_command_asks_a_worker(
    start_worker: StartWorker, served_home: Path, model_server: ModelServer
) -> None:
    start_worker()
    asked = ["ask", QUESTION, "--json", "--home", str(served_home)]
    outcome = runner.invoke(app, asked)
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["response"] == DRAFT.response
    assert "no worker" not in outcome.stderr


def test_a_question_that_waits_for_a_worker_says_so(
    start_worker: StartWorker, served_home: Path
) -> None:
    command = [sys.executable, "-m", "unified_flow", "ask", QUESTION, "--home", str(served_home)]
    asking = Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert asking.stderr is not None
        assert "no worker takes turns" in asking.stderr.readline()
        start_worker()
        said, _ = asking.communicate(timeout=LIMIT_S)
        assert DRAFT.response in said
    finally:
        asking.kill()
        asking.communicate()


def test_who_leaves_ends_the_turn(
    client: UnifiedFlow,
    start_worker: StartWorker,
    model_server: ModelServer,
    database: Database,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It can be resumed, as after Ctrl-C on one machine; it is no error that the worker logs."""
    start_worker()
    gate = Gate(DRAFT)
    model_server.script = script(synthesis=gate)

    async def ask_and_leave() -> None:
        asking = asyncio.create_task(client.process("s", QUESTION))
        await asyncio.to_thread(gate.wait_for_one)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(ask_and_leave())
    wait_until(database, "SELECT status = 'interrupted' AND NOT live FROM turns")
    gate.open.set()
    resumed = asyncio.run(resume_turn(client, 1, ResumeRequest()))
    assert resumed.status == "answered"
    assert "Traceback" not in capfd.readouterr().err


def test_who_leaves_before_a_worker_has_the_turn_ends_it(
    client: UnifiedFlow, database: Database
) -> None:
    async def ask_and_leave() -> None:
        asking = asyncio.create_task(client.process("s", QUESTION))
        await asyncio.to_thread(wait_until, database, "SELECT bool_or(live) FROM turns")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(ask_and_leave())
    assert wait_until(database, "SELECT status = 'interrupted' AND NOT live FROM turns")
    assert wait_until(database, "SELECT status = 'CANCELLED' FROM dbos.workflow_status")


def test_a_turn_that_waits_for_a_worker_is_queued_and_can_be_given_up(
    served_home: Path, database: Database
) -> None:
    """Whoever asked for it was killed, and no worker comes."""
    words = [sys.executable, "-m", "unified_flow", "ask", QUESTION, "--home", str(served_home)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as asking:
        assert wait_until(database, "SELECT bool_or(live) FROM turns")
        asking.kill()
    home = ["--home", str(served_home)]
    listed = runner.invoke(app, ["turns", "list", "--json", *home])
    assert [row["status"] for row in json.loads(listed.stdout)["turns"]] == ["queued"]
    assert runner.invoke(app, ["turns", "abandon", "1", "--yes", *home]).exit_code == 0
    assert database.row("SELECT status, live FROM turns") == ("abandoned", False)


def test_who_asked_is_told_that_the_turn_was_given_up(
    client: UnifiedFlow, served_home: Path, database: Database
) -> None:
    words = ["turns", "abandon", "1", "--note", "x", "--yes", "--home", str(served_home)]

    async def ask_and_wait() -> None:
        asking = asyncio.create_task(client.process("s", QUESTION))
        await asyncio.to_thread(wait_until, database, "SELECT bool_or(live) FROM turns")
        given_up = await asyncio.to_thread(runner.invoke, app, words)
        assert given_up.exit_code == 0, given_up.output
        with pytest.raises(TurnStoppedError, match="abandoned by somebody else"):
            await asking

    asyncio.run(within(ask_and_wait()))


def test_clients_of_a_service_are_told_that_the_turn_was_given_up(
    served_home: Path, database: Database
) -> None:
    """It is no failure: nothing is put in the queue, and nothing is called unavailable."""
    settings = (served_home / "unified_flow.toml").read_text()
    chat = {"messages": [{"role": "user", "content": QUESTION}]}
    asked = [("/query", {"question": QUESTION}), ("/v1/chat/completions", chat)]
    with serving(served_home, settings=settings) as service, ThreadPoolExecutor() as pool:
        for turn, (path, body) in enumerate(asked, 1):
            answer = pool.submit(service.http.post, path, json=body)
            wait_until(database, f"SELECT live FROM turns WHERE turn_id = {turn}")
            words = ["turns", "abandon", str(turn), "--yes", "--home", str(served_home)]
            assert runner.invoke(app, words).exit_code == 0
            response = answer.result(LIMIT_S)
            problem = response.json() if path == "/query" else response.json()["error"]
            assert (response.status_code, problem["code"]) == (409, "VALIDATION_ERROR")
            assert problem["message"].startswith("The turn was abandoned: ")
            assert response.headers["x-should-retry"] == "false"
    assert list(queue_at(served_home).entries()) == []


def test_a_queued_turn_that_is_edited_goes_on_when_who_asked_leaves(
    client: UnifiedFlow, start_worker: StartWorker, served_home: Path, database: Database
) -> None:
    other = UnifiedFlow.from_config(served_home)

    async def ask_edit_and_leave() -> None:
        asking = asyncio.create_task(client.process("s", QUESTION))
        await asyncio.to_thread(wait_until, database, "SELECT bool_or(live) FROM turns")
        seen = await turn_archive(served_home).require(1)
        assert seen.status == "queued"
        request = ResumeRequest(edited={"question": f"{QUESTION} In short."}, seen=seen)
        resuming = asyncio.create_task(resume_turn(other, 1, request))
        await asyncio.to_thread(wait_until, database, "SELECT run = 2 FROM turns")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.to_thread(start_worker)
        resumed = await resuming
        assert (resumed.status, resumed.turn.question) == ("answered", f"{QUESTION} In short.")

    asyncio.run(within(ask_edit_and_leave()))


def test_a_turn_goes_on_when_the_service_that_was_asked_stops(
    start_worker: StartWorker,
    model_server: ModelServer,
    gate: Gate,
    served_home: Path,
    database: Database,
) -> None:
    """As when it is killed: whoever asked may ask another service for the answer."""
    start_worker()
    settings = (served_home / "unified_flow.toml").read_text()
    ask = partial(Service.ask, session_id="s", headers={"X-Request-ID": "r"})
    at_once = f"{settings}[serve]\nshutdown_grace_s = 0\n"
    with serving(served_home, settings=at_once) as service, ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, service)
        gate.wait_for_one()
        assert service.stop() in (0, -signal.SIGTERM)
        assert asked.result(LIMIT_S).status_code == 503
    with serving(served_home, settings=settings) as service, ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, service)
        wait_until(database, "SELECT followers = 2 FROM turns")
        gate.open.set()
        assert asked.result(LIMIT_S).json()["answer"] == DRAFT.response
    assert model_server.phases.count("synthesis") == 1


def test_a_run_that_is_taken_as_its_worker_ends_goes_on_elsewhere(
    client: UnifiedFlow, start_worker: StartWorker, database: Database
) -> None:
    """DBOS may have given it out, and not begun it yet."""
    first = start_worker(code=SLOW_TO_BEGIN)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(lambda: asyncio.run(within(client.process("s", QUESTION))))
        wait_until(database, "SELECT status = 'PENDING' FROM dbos.workflow_status")
        first.send_signal(signal.SIGTERM)
        assert first.wait(LIMIT_S) == 0
        start_worker()
        turn = asked.result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 0)


SLOW_TO_BEGIN = """
import time
from dbos import _queue
begin = _queue.execute_dequeued_workflow
def slowly(*given):
    time.sleep(4)
    return begin(*given)
_queue.execute_dequeued_workflow = slowly
from unified_flow.__main__ import main
main()
"""


def test_what_dbos_keeps_is_numbers_and_one_step(
    client: UnifiedFlow, start_worker: StartWorker, database: Database
) -> None:
    start_worker()
    asyncio.run(client.process("s", QUESTION))
    ended = "SELECT status = 'SUCCESS' FROM dbos.workflow_status"
    assert wait_until(database, ended)
    with database.connection() as connection:
        (given,) = connection.execute("SELECT inputs FROM dbos.workflow_input").fetchone() or ()
        assert json.loads(given) == {"positionalArgs": [1, 1], "namedArgs": {}}
        steps = connection.execute("SELECT output FROM dbos.operation_outputs").fetchall()
    assert len(steps) == 1
    assert "answered" in steps[0][0]


def test_a_turn_that_is_not_kept_goes_once_it_is_answered(
    client: UnifiedFlow, start_worker: StartWorker, database: Database
) -> None:
    start_worker()
    turn = asyncio.run(client.process("s", QUESTION, persist=False))
    assert (turn.status, turn.response) == ("answered", DRAFT.response)
    with database.connection() as connection:
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (0,)


def test_every_command_knows_the_turns_of_all_machines(
    client: UnifiedFlow,
    start_worker: StartWorker,
    model_server: ModelServer,
    served_home: Path,
    tmp_path: Path,
) -> None:
    """From a third machine, which has asked nothing and run nothing: what failed is shown,
    replayed, exported and released, and what it was asked as is traced."""
    start_worker()
    model_server.script = script(synthesis="no JSON")
    for number in range(3):
        with pytest.raises(SynthesisError):
            asyncio.run(client.process(f"s{number}", QUESTION, request_id=f"r{number}"))
    third = tmp_path / "third"
    third.mkdir()
    (third / "unified_flow.toml").write_text((served_home / "unified_flow.toml").read_text())

    def said(*words: str) -> str:
        outcome = runner.invoke(app, [*words, "--home", str(third)])
        assert outcome.exit_code == 0, outcome.output
        return outcome.stdout

    assert "3 " in said("turns", "list")
    assert "SynthesisError" in said("trace", "r1")
    entry, *others = queue_at(third).entries()
    assert len(others) == 2
    assert "def test_" in said("interventions", "export", entry["id"], "--as", "pytest")
    model_server.script = script()
    said("interventions", "retry", entry["id"], "--all", "--note", "plugged in", "--yes")
    closed = [each["resolutions"][-1]["verified"] for each in queue_at(third).entries()]
    assert len(closed) == 3
    assert all(closed)
    assert model_server.phases.count("planner") == 3
    assert said("replay", "2").count("the same") == 7
