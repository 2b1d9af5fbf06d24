"""One queue for many machines: homes that share a database and nothing else."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import pytest
from typer.testing import CliRunner

from interventions import InterventionQueue, InterventionRequest
from interventions.cli import app
from interventions.doctor import examine
from interventions.entry import is_open
from interventions.errors import JoinedPutError, StorageError
from interventions.home import queue_file
from interventions.queue import queue_at
from interventions.recovery import recover
from monitor.core.source import LiveSource
from tests.error_log import error_lines
from tests.forked import Process
from tests.servers.fixtures import VARIABLE
from tests.servers.postgres import crashed
from unified_flow.shared.database import Database, joining
from unified_flow.shared.queue_store import QueueStore

AWAY = "postgresql://nobody@127.0.0.1:1/flow"
runner = CliRunner()


def request(number: int = 1, **fields: object) -> InterventionRequest:
    about = {
        "type": "error",
        "severity": "high",
        "phase": "planner",
        "error_type": f"E{number}",
        "error_message": f"number {number} failed",
        "session_id": f"s{number}",
        "turn_id": number,
        "environment": {"known": True},
    }
    return InterventionRequest.model_validate({**about, **fields})


def until(holds: Callable[[], object]) -> None:
    ends_at = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < ends_at, "it never came"
        time.sleep(0.02)


@pytest.fixture
def elsewhere(shared_home: Path, tmp_path: Path) -> Path:
    """The home of another machine."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "unified_flow.toml").write_text((shared_home / "unified_flow.toml").read_text())
    return place


def test_a_failure_of_one_machine_is_closed_from_another(
    shared_home: Path, elsewhere: Path
) -> None:
    name = queue_at(shared_home).put(request()).intervention_id
    assert name is not None
    listed = runner.invoke(app, ["list", "--jsonl", "--home", str(elsewhere)])
    assert json.loads(listed.stdout)["id"] == name
    closing = ["resolve", name, "--note", "new key", "--home", str(elsewhere)]
    assert runner.invoke(app, closing).exit_code == 0
    assert queue_at(shared_home).find(name)["resolution"] == "new key"
    assert not queue_file(shared_home).exists()
    assert [line["id"] for line in error_lines(shared_home)] == [name]


def test_the_monitor_is_told_of_what_another_machine_does(
    shared_home: Path, elsewhere: Path
) -> None:
    source = LiveSource(queue_at(shared_home))
    source.stamp()
    assert source.read().entries == ()
    assert source.read().trouble is None
    before = source.stamp()
    queue_at(elsewhere).put(request())
    until(lambda: source.stamp() != before and source.read().entries)
    snapshot = source.read()
    assert snapshot.trouble is None
    assert snapshot.health is not None
    assert snapshot.health["accepted"] == 1


def test_watch_prints_what_another_machine_puts(shared_home: Path, elsewhere: Path) -> None:
    words = ["-m", "interventions", "watch", "--jsonl", "--limit", "1", "--home", str(shared_home)]
    with Process([sys.executable, *words], stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stderr is not None
        assert "watching" in process.stderr.readline()
        name = queue_at(elsewhere).put(request()).intervention_id
        assert json.loads(process.communicate(timeout=60)[0])["id"] == name


def put_many(home: Path, worker: int, count: int) -> None:
    queue = InterventionQueue(
        home, max_size=12, max_per_session=2, max_per_error_type=4, lock_timeout_s=60
    )
    for number in range(count):
        queue.put(
            request(
                session_id=f"s{(worker + number) % 7}",
                error_type=f"E{number % 4}",
                turn_id=worker * count + number + 1,
            )
        )


def test_the_limits_are_exact_with_many_writers(shared_home: Path) -> None:
    each = 25
    code = "from tests.shared.test_queue import Path, put_many; put_many(Path({!r}), {}, {})"
    words = [sys.executable, "-c"]
    workers = [Process([*words, code.format(str(shared_home), n, each)]) for n in range(6)]
    assert [worker.wait(300) for worker in workers] == [0] * len(workers)
    queue = queue_at(shared_home)
    entries = [entry for entry in queue.entries() if is_open(entry)]
    assert len(entries) <= 12
    assert max(Counter(entry["session_id"] for entry in entries).values()) <= 2
    assert max(Counter(entry["error_type"] for entry in entries).values()) <= 4
    health = queue.health()
    dropped = sum(health["dropped"].values())
    assert health["accepted"] == len(entries)
    assert health["accepted"] + health["merged"] + health["counted"] + dropped == 6 * each
    assert sum(entry["occurrences"] for entry in entries) == 6 * each - dropped
    assert len(list(error_lines(shared_home))) == 6 * each


def test_what_found_no_room_waits_where_every_machine_drains_it(
    shared_home: Path, elsewhere: Path
) -> None:
    here = InterventionQueue(shared_home, max_size=1)
    first = here.put(request(1)).intervention_id
    assert not here.put(request(2))
    assert not here.put(request(3, severity="critical"))
    there = InterventionQueue(elsewhere, max_size=2)
    assert there.turns_needed() == {1, 2, 3}
    found = recover(there, lost=False)
    assert len(found.put) == found.left == 1
    assert {entry["error_type"] for entry in there.entries()} == {"E1", "E3"}
    there.resolve(str(first), "x")
    assert len(recover(here, lost=False).put) == 0
    there.resolve("last", "y")
    assert len(recover(here, lost=False).put) == 1
    assert recover(there, lost=False).left == 0
    assert here.health()["dropped"] == {"queue_full": 2}


def test_a_failure_while_the_database_is_away_is_put_once_it_is_back(
    shared_home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, AWAY)
    away = queue_at(shared_home)
    admission = away.put(request())
    assert (bool(admission), admission.reason) == (False, "storage")
    with pytest.raises(StorageError, match=VARIABLE) as told:
        away.entries()
    assert "shared check" in told.value.hint
    listed = runner.invoke(app, ["list", "--home", str(shared_home)])
    assert listed.exit_code == 4
    monkeypatch.setenv(VARIABLE, database_url)
    back = queue_at(shared_home)
    for _ in range(2):
        assert recover(back, lost=False).left == 0
        assert [entry["occurrences"] for entry in back.entries()] == [1]


def _set(database: Database, setting: str) -> None:
    with database.connect() as session:
        session.execute(f"ALTER SYSTEM {setting}".encode())
        session.execute("SELECT pg_reload_conf()")


def test_what_was_acknowledged_outlives_a_crash_of_the_server(
    shared_home: Path, database: Database
) -> None:
    """The lock is given on before the disk has the put, which nobody is told of until it has."""
    # Else the server writes by itself what nobody has waited for, a moment later.
    _set(database, "SET wal_writer_delay = '10s'")
    queue = queue_at(shared_home)
    acknowledged = [queue.put(request(number)).intervention_id for number in range(5)]
    with crashed(database.url):
        pass
    _set(database, "RESET wal_writer_delay")
    assert [entry["id"] for entry in queue_at(shared_home).entries()] == acknowledged


def test_a_put_may_be_part_of_another_transaction(shared_home: Path, database: Database) -> None:
    queue = queue_at(shared_home)
    with database.connect() as session:
        with suppress(ZeroDivisionError), session.transaction(), joining(session):
            assert queue.put(request(1))
            raise ZeroDivisionError
        assert queue.entries() == ()
        with session.transaction(), joining(session):
            assert queue.put(request(2))
            assert queue_at(shared_home).open_count() == 1
    (entry,) = queue.entries()
    assert entry["error_type"] == "E2"
    assert recover(queue, lost=False).put == {}


def test_a_joined_put_that_the_database_loses_is_begun_anew_by_who_began_it(
    shared_home: Path, database: Database
) -> None:
    queue = queue_at(shared_home)
    with database.connect() as session, database.connect() as other:
        pid = session.info.backend_pid

        def put() -> None:
            with joining(session), session.transaction():
                other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
                queue.put(request())

        with pytest.raises(JoinedPutError):
            put()
    assert queue.entries() == ()
    assert recover(queue, lost=False).put == {}
    assert list(error_lines(shared_home)) == []


def test_thousands_of_turns_of_one_entry_are_all_known(shared_home: Path) -> None:
    queue = InterventionQueue(shared_home, max_per_session=1)
    for turn in range(1, 231):
        queue.put(request(1, turn_id=turn))
    (entry,) = queue.entries()
    assert entry["turns"] == list(range(2, 231))
    queue.resolve(entry["id"], "x")
    with QueueStore(shared_home)._database.connection() as connection:
        ((stored,),) = connection.execute("SELECT entry FROM interventions")
    assert len(json.loads(stored)["turns"]) < 201


def test_the_doctor_looks_at_the_shared_queue(shared_home: Path) -> None:
    queue = queue_at(shared_home)
    queue.put(request())
    findings = examine(queue, mend=True)
    assert [finding.what for finding in findings if not finding.fine] == []
    assert "the shared queue can be read: 1 entries, 1 open" in {f.what for f in findings}


def test_the_archive_keeps_what_the_setting_says(shared_home: Path) -> None:
    with (shared_home / "unified_flow.toml").open("a") as settings:
        settings.write("[retention]\narchive_entries = 1\n")
    queue = InterventionQueue(shared_home, max_size=1)
    for number in range(3):
        queue.resolve(queue.put(request(number)).intervention_id or "", "x")
    assert len(queue.history()) == 3
    examine(queue, mend=True)
    assert [entry["error_type"] for entry in queue.history()] == ["E2", "E1"]
