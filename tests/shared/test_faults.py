"""What goes wrong with workers: nothing is done twice or lost, and a person is asked once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from interventions.queue import queue_at
from tests import forked
from tests.answers import COMPLETE, DRAFT, PROCEED, QUESTION
from tests.servers.fixtures import VARIABLE
from tests.servers.model_server import ModelServer, status
from tests.shared.conftest import LIMIT_S, Gate, StartWorker, script, wait_until, within
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.threads import wait_for
from unified_flow.phases.errors import CoordinatorError, PhaseError, SynthesisError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.shared.database import Database
from unified_flow.shared.presence import SILENT_S
from unified_flow.stores import turn_store
from unified_flow.turns.results import Plan, ToolRequest
from unified_flow.turns.turn import Turn

ENDED = (
    "SELECT count(*) > 0 AND bool_and(status IN ('SUCCESS', 'CANCELLED')) FROM dbos.workflow_status"
)


@pytest.fixture
def asking(client: UnifiedFlow) -> Any:
    """Asks in a thread; a future of the turn."""
    with ThreadPoolExecutor() as threads:

        def ask(session: str = "s", **options: Any) -> Future[Turn]:
            return threads.submit(
                lambda: asyncio.run(within(client.process(session, QUESTION, **options)))
            )

        yield ask


Asking = Callable[..., "Future[Turn]"]


def completed(home: Path, turn_id: int = 1) -> Counter[str]:
    events = wait_for(turn_store(home).read(turn_id))
    return Counter(event.phase for event in events if event.event == "phase_completed")


def of_turn(home: Path, turn_id: int = 1) -> list[str]:
    return [event.event for event in wait_for(turn_store(home).read(turn_id))]


def assert_nothing_happened(asked: Future[Turn], home: Path) -> None:
    """The worker that had the turn has answered it, and no person is asked."""
    turn = asked.result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 0)
    assert set(completed(home).values()) == {1}
    assert list(queue_at(home).entries()) == []


def test_a_killed_worker_s_turn_goes_on_elsewhere(
    asking: Asking,
    start_worker: StartWorker,
    model_server: ModelServer,
    gate: Gate,
    served_home: Path,
) -> None:
    """Phases that had completed are not run again, and no person is asked."""
    first = start_worker()
    asked = asking()
    gate.wait_for_one()
    start_worker()
    first.kill()
    gate.wait_for_one()
    gate.open.set()
    turn = asked.result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 1)
    assert set(completed(served_home).values()) == {1}
    assert model_server.phases.count("planner") == 1
    assert list(queue_at(served_home).entries()) == []


def test_what_has_ended_is_not_run_again_by_who_takes_it_over(
    asking: Asking,
    start_worker: StartWorker,
    model_server: ModelServer,
    served_home: Path,
    database: Database,
) -> None:
    """The worker dies after the failure is in the database, and before DBOS knows of it."""
    code = DIE_AFTER_APPEND_WITH
    model_server.script = script(synthesis=status(500))
    first = start_worker(code=code)
    asked = asking()
    with pytest.raises(SynthesisError) as failed:
        asked.result(LIMIT_S)
    assert first.wait(LIMIT_S) == -signal.SIGKILL
    start_worker()
    assert wait_until(database, ENDED)
    (entry,) = queue_at(served_home).entries()
    assert (entry["id"], entry["occurrences"]) == (failed.value.intervention_id, 1)
    assert of_turn(served_home).count("phase_failed") == 1


def test_a_worker_that_dies_between_the_put_and_its_line_leaves_neither(
    asking: Asking, start_worker: StartWorker, model_server: ModelServer, served_home: Path
) -> None:
    model_server.script = script(synthesis=status(500))
    first = start_worker(code=DIE_AFTER_PUT)
    asked = asking()
    assert first.wait(LIMIT_S) == -signal.SIGKILL
    assert list(queue_at(served_home).entries()) == []
    start_worker()
    with pytest.raises(SynthesisError):
        asked.result(LIMIT_S)
    (entry,) = queue_at(served_home).entries()
    assert entry["occurrences"] == 1
    assert of_turn(served_home).count("phase_failed") == 1


def test_who_dies_before_the_first_line_leaves_no_turn(
    client: UnifiedFlow, start_worker: StartWorker, served_home: Path, database: Database
) -> None:
    """Its message, sent again, is the only turn."""
    words = [sys.executable, "-c", DIE_AFTER_NUMBER, "ask", "--home", str(served_home), QUESTION]
    assert forked.run(words, timeout=LIMIT_S).returncode == -signal.SIGKILL
    assert database.row("SELECT count(*) FROM turns") == (0,)
    start_worker()
    turn = asyncio.run(within(client.process("s", QUESTION, request_id="r")))
    assert (turn.turn_id, turn.status) == (2, "answered")
    assert database.rows("SELECT turn_id, status FROM turns") == [(2, "answered")]


def test_a_frozen_worker_is_fenced(
    asking: Asking, start_worker: StartWorker, gate: Gate, served_home: Path, database: Database
) -> None:
    """Its sessions are ended once it says nothing any more; when it wakes up it writes nothing."""
    first = start_worker("--drain", "5")  # DBOS may come back to its database later than that
    asked = asking()
    gate.wait_for_one()
    first.send_signal(signal.SIGSTOP)
    start_worker()
    gate.wait_for_one()
    gate.open.set()
    turn = asked.result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 1)
    lines = len(of_turn(served_home))
    first.send_signal(signal.SIGCONT)
    assert wait_until(database, ENDED)
    first.send_signal(signal.SIGTERM)
    assert first.wait(LIMIT_S) == 0
    assert len(of_turn(served_home)) == lines
    assert set(completed(served_home).values()) == {1}


def test_a_turn_that_was_left_as_its_worker_died_has_ended(
    client: UnifiedFlow,
    start_worker: StartWorker,
    model_server: ModelServer,
    gate: Gate,
    database: Database,
) -> None:
    """The worker cannot notice any more that nobody waits for the answer."""
    first = start_worker()

    async def ask_and_leave() -> None:
        asked = asyncio.create_task(client.process("s", QUESTION))
        await asyncio.to_thread(gate.wait_for_one)
        first.send_signal(signal.SIGSTOP)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(within(ask_and_leave()))
    first.kill()
    gate.open.set()
    start_worker()
    assert wait_until(database, "SELECT status = 'interrupted' AND NOT live FROM turns")
    assert model_server.phases.count("synthesis") == 1


def test_a_drained_worker_ends_its_turns_and_begins_none(
    asking: Asking, start_worker: StartWorker, model_server: ModelServer, served_home: Path
) -> None:
    gate = Gate(DRAFT)
    model_server.script = script(synthesis=[gate, DRAFT])
    first = start_worker("--drain", "60")
    asked = asking()
    gate.wait_for_one()
    first.send_signal(signal.SIGTERM)
    later = asking("another")
    start_worker()
    assert later.result(LIMIT_S).status == "answered"
    assert first.poll() is None
    gate.open.set()
    assert asked.result(LIMIT_S).taken_over == 0
    assert first.wait(LIMIT_S) == 0


def test_what_does_not_end_in_time_goes_on_elsewhere(
    asking: Asking, start_worker: StartWorker, gate: Gate
) -> None:
    first = start_worker("--drain", "0")
    asked = asking()
    gate.wait_for_one()
    first.send_signal(signal.SIGTERM)
    assert first.wait(LIMIT_S) == 0
    start_worker()
    gate.wait_for_one()
    gate.open.set()
    turn = asked.result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 1)


def test_a_turn_that_kills_its_workers_reaches_a_person_once(
    asking: Asking,
    start_worker: StartWorker,
    model_server: ModelServer,
    client: UnifiedFlow,
    served_home: Path,
) -> None:
    """After the third worker; once its cause is mended it goes on as any failed turn."""
    gate = Gate(PROCEED)
    model_server.script = script(reflection=gate)
    asked = asking()
    for _ in range(3):
        worker = start_worker()
        gate.wait_for_one()
        worker.kill()
    start_worker()
    with pytest.raises(PhaseError) as failed:
        asked.result(LIMIT_S)
    assert (failed.value.phase, failed.value.failure.error_type) == ("reflection", "ProcessDied")
    (entry,) = queue_at(served_home).entries()
    assert entry["id"] == failed.value.intervention_id
    gate.open.set()
    resumed = asyncio.run(resume_turn(client, 1, ResumeRequest(note="more memory")))
    assert (resumed.status, resumed.closed) == ("answered", entry["id"])
    assert completed(served_home)["query_analyzer"] == 1


def test_a_database_that_is_away_fails_no_phase(
    asking: Asking, start_worker: StartWorker, gate: Gate, served_home: Path, database: Database
) -> None:
    """All sessions end at once, as in a restart, and nobody is let in for a while."""
    start_worker()
    asked = asking()
    gate.wait_for_one()
    with database.connect() as session:
        name = session.info.dbname
    admin = Database(database.url.replace(f"/{name}?", "/postgres?"), "the server")
    with admin.connect() as session:
        session.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        session.execute(ended, (name,))
        gate.open.set()
        with pytest.raises(TimeoutError):
            asked.result(2.0)
        session.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())
    assert_nothing_happened(asked, served_home)


def test_a_turn_that_was_just_taken_as_the_database_went_away_is_taken_again(
    asking: Asking, start_worker: StartWorker, served_home: Path
) -> None:
    """Its worker lives on, so that nobody else looked after it: it stayed queued for ever."""
    start_worker(code=AWAY_AS_IT_TAKES)
    turn = asking().result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 0)
    assert set(completed(served_home).values()) == {1}


def test_a_turn_of_a_newer_version_waits_for_a_worker_that_can_read_it(
    asking: Asking,
    start_worker: StartWorker,
    model_server: ModelServer,
    gate: Gate,
    database: Database,
) -> None:
    """In a rolling upgrade: a new worker goes on with an old turn, dies, and an old one notices."""
    newer = start_worker(code=NEWER)
    asked = asking()
    gate.wait_for_one()
    start_worker()
    newer.kill()
    waits = "SELECT queue_name = 'turns-5' AND status = 'ENQUEUED' FROM dbos.workflow_status"
    assert wait_until(database, waits)
    start_worker(code=NEWER)
    gate.wait_for_one()
    gate.open.set()
    assert asked.result(LIMIT_S).taken_over == 1
    assert model_server.phases.count("planner") == 1


def test_an_older_service_leaves_a_newer_version_s_turn_to_newer_ones(
    client: UnifiedFlow,
    start_worker: StartWorker,
    gate: Gate,
    served_home: Path,
    database: Database,
) -> None:
    """In a rolling upgrade: whoever asked it is to ask again; nobody is to mend anything."""
    start_worker(code=NEWER)

    async def asked_again() -> None:
        again = await client.process_request("s", QUESTION, request_id="r")
        assert again["error_type"] == "JournalVersionError"
        assert again["response"].startswith("The service cannot take the request right now.")

    async def ask_and_leave() -> None:
        asking = asyncio.create_task(client.process("s", QUESTION, request_id="r"))
        await asyncio.to_thread(gate.wait_for_one)
        await asked_again()
        database.row("UPDATE turns SET followers = 1 RETURNING 1")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(within(ask_and_leave()))
    assert wait_until(database, "SELECT status = 'interrupted' AND NOT live FROM turns")
    asyncio.run(within(asked_again()))
    assert database.row("SELECT count(*) FROM turns") == (1,)
    assert list(queue_at(served_home).entries()) == []
    gate.open.set()


def test_a_turn_that_no_worker_can_read_is_told_once(
    asking: Asking, start_worker: StartWorker, served_home: Path, database: Database
) -> None:
    """Who waits for it does not wait for ever."""
    asked = asking()
    assert wait_until(database, "SELECT bool_or(live) FROM turns")
    with database.connection() as connection:
        damage = 'UPDATE turn_events SET line = \'{"event":"turn_started"}\' WHERE seq = 1'
        connection.execute(damage)
    start_worker()
    with pytest.raises(RetrievalError, match="could not be run"):
        asked.result(LIMIT_S)
    (entry,) = queue_at(served_home).entries()
    assert (entry["phase"], entry["severity"]) == ("unknown", "critical")


def test_clocks_that_differ_by_minutes_change_nothing(
    asking: Asking,
    start_worker: StartWorker,
    model_server: ModelServer,
    gate: Gate,
    served_home: Path,
    database: Database,
) -> None:
    """Of two workers one is ahead and one behind, and so are those who snooze and resolve."""
    first = start_worker(code=CLOCK, MINUTES="7")
    asked = asking()
    gate.wait_for_one()
    start_worker(code=CLOCK, MINUTES="-7")
    looked = "SELECT count(*) = 2 AND bool_and(seen_at > started_at + interval '2 s') FROM workers"
    assert wait_until(database, looked)
    assert database.rows("SELECT worker_id FROM workers WHERE reaped_at IS NOT NULL") == []
    first.kill()
    killed_at = monotonic()
    gate.wait_for_one()
    assert monotonic() - killed_at < SILENT_S
    gate.open.set()
    turn = asked.result(LIMIT_S)
    assert (turn.status, turn.taken_over) == ("answered", 1)
    assert set(completed(served_home).values()) == {1}
    said_at = [event.at for event in wait_for(turn_store(served_home).read(1))]
    assert max(said_at) - min(said_at) > timedelta(minutes=13)

    def person(minutes: str, *words: str) -> None:
        command = [sys.executable, "-c", CLOCK_OF_INTERVENTIONS, *words, "--home", str(served_home)]
        forked.run(command, env=os.environ | {"MINUTES": minutes}, check=True, timeout=LIMIT_S)

    model_server.script = script(synthesis=status(500))
    with pytest.raises(SynthesisError):
        asking().result(LIMIT_S)
    person("7", "snooze", "last", "--for", "1h")
    start_worker(code=CLOCK, MINUTES="7")
    with pytest.raises(SynthesisError):
        asking().result(LIMIT_S)
    (entry,) = queue_at(served_home).entries()
    assert entry["occurrences"] == 2
    model_server.script = script()
    person("-7", "retry", entry["id"], "--all", "--yes")
    (entry,) = queue_at(served_home).closed()
    assert entry["resolutions"][-1]["verified"]
    assert [of_turn(served_home, n).count("phase_failed") for n in (1, 2, 3)] == [0, 1, 1]
    actions = database.rows("SELECT action FROM intervention_transitions ORDER BY place")
    assert [name for (name,) in actions if name in ("snooze", "resolve")] == ["snooze", "resolve"]


def test_a_full_disk_of_the_database_fails_no_phase(
    asking: Asking, start_worker: StartWorker, gate: Gate, served_home: Path, database: Database
) -> None:
    """What PostgreSQL says when it cannot make a table longer; as soon as it can, turns go on."""
    start_worker()
    asked = asking()
    gate.wait_for_one()
    with database.connect() as session:
        session.execute(FULL.encode())
        gate.open.set()
        assert wait_until(database, "SELECT last_value >= 3 FROM refusals")
        assert not asked.done()
        session.execute("DROP TRIGGER full_disk ON turn_events")
    assert_nothing_happened(asked, served_home)


def test_a_write_that_had_begun_is_asked_about(
    asking: Asking,
    start_worker: StartWorker,
    model_server: ModelServer,
    client: UnifiedFlow,
    served_home: Path,
    tmp_path: Path,
) -> None:
    """Nobody repeats it but a person who says so."""
    note = tmp_path / "note.txt"
    (tmp_path / "notes.py").write_text(WRITER)
    with (served_home / "unified_flow.toml").open("a") as settings:
        settings.write(f'[tools]\nmodules = ["{tmp_path / "notes.py"}"]\nallow = ["write_note"]\n')
    call = ToolRequest(tool="write_note", args={"path": str(note)}, goal_id="g1")
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[call])
    model_server.script = script(planner=[plan, COMPLETE])
    first = start_worker()
    asked = asking()
    end = monotonic() + LIMIT_S
    while not (note.exists() and note.read_text()) and monotonic() < end:
        sleep(0.05)
    first.kill()
    start_worker()
    with pytest.raises(CoordinatorError) as failed:
        asked.result(LIMIT_S)
    assert failed.value.failure.error_type == "ProcessDied"
    (entry,) = queue_at(served_home).entries()
    with pytest.raises(NotResumableError, match="had begun to write"):
        asyncio.run(resume_turn(client, 1, ResumeRequest(note="as it is")))
    done = ResumeRequest(note="it is there", tools_done=True)
    resumed = asyncio.run(resume_turn(client, 1, done))
    assert (resumed.status, resumed.closed) == ("answered", entry["id"])
    assert note.read_text() == "x"


WRITER = """
import time
from pathlib import Path
from unified_flow import tool

@tool(access="writes")
def write_note(path: str) -> str:
    "Write a note."
    with Path(path).open("a") as note:
        note.write("x")
    time.sleep(60)
    return "written"
"""
NEWER = """
import functools
from unified_flow import worker
from unified_flow.cli.worker import worker as _
from unified_flow.shared import presence, turn_lease, turn_store, workflows
from unified_flow.turns import events, lines
for module in (events, lines, presence, turn_lease, turn_store, workflows):
    module.VERSION = 5
lines.UPCASTERS[4] = lambda record: record
worker.TurnTakenOver = functools.partial(worker.TurnTakenOver, version=5)
from unified_flow.__main__ import main
main()
"""
CLOCK = """
import os
from datetime import UTC, datetime, timedelta
from freezegun import freeze_time
moved = datetime.now(UTC) + timedelta(minutes=float(os.environ["MINUTES"]))
freeze_time(moved, tick=True, real_asyncio=True).start()
"""
CLOCK_OF_INTERVENTIONS = CLOCK + "from interventions.__main__ import main\nmain()\n"
CLOCK += "from unified_flow.__main__ import main\nmain()\n"
FULL = """
CREATE SEQUENCE refusals;
CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM nextval('refusals');
        RAISE 'could not extend file' USING ERRCODE = 'disk_full';
    END
$$;
CREATE TRIGGER full_disk BEFORE INSERT ON turn_events EXECUTE FUNCTION is_full();
"""
DIE = "import os, signal\ndef die(): os.kill(os.getpid(), signal.SIGKILL)\n"
MAIN = "\nfrom unified_flow.__main__ import main\nmain()\n"
DIE_AFTER_APPEND_WITH = (
    DIE
    + """
from unified_flow.shared.turn_lease import PostgresLease as L
put = L._put
def then_die(self, *given):
    put(self, *given); die()
L._put = then_die
"""
    + MAIN
)
DIE_AFTER_NUMBER = (
    DIE
    + """
from unified_flow.shared.turn_store import PostgresTurnStore as S
create = S.create
async def then_die(self, **options):
    await create(self, **options); die()
S.create = then_die
"""
    + MAIN
)
AWAY_AS_IT_TAKES = (
    f"""
import os
import psycopg
from dbos import _queue
from unified_flow.shared import presence
presence.GRACE_S = 0.5
begin = _queue.execute_dequeued_workflow
def lose(*args):
    _queue.execute_dequeued_workflow = begin
    with psycopg.connect(os.environ["{VARIABLE}"], autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
    raise ConnectionError("the server restarts")
_queue.execute_dequeued_workflow = lose
"""
    + MAIN
)
DIE_AFTER_PUT = (
    DIE
    + """
import unified_flow.engine.boundary as boundary
report = boundary.report_failure
def then_die(*given):
    report(*given); die()
boundary.report_failure = then_die
"""
    + MAIN
)
