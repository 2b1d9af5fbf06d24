"""A home's files, taken over into the shared database once, as a whole, and compared."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import pytest
from typer.testing import CliRunner

from interventions import InterventionQueue
from interventions.home import lock_file
from interventions.queue import queue_at
from interventions.storage.lock import FairLock
from tests.answers import COMPLETE, scripted_flow
from tests.forked import REPOSITORY, Process
from tests.servers.fixtures import VARIABLE
from tests.shared.test_queue import request
from unified_flow.cli.app import app
from unified_flow.config.tables import GuardrailSettings
from unified_flow.guardrails.guardrails import open_store
from unified_flow.lib.threads import wait_for
from unified_flow.shared.database import SESSION, Database
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.stores import grant_store, memory_store, session_store
from unified_flow.tools.grants import Grant
from unified_flow.turns.file_store import FileTurnStore

runner = CliRunner()
KINDS = ["turns", "interventions", "history", "transitions", "sessions", "memories", "grants"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A home as one machine leaves it."""
    home = tmp_path / "one machine"
    home.mkdir()
    for session, question in [("a", "one?"), ("a", "two?"), ("b", "three?")]:
        asyncio.run(scripted_flow(home, planner=COMPLETE).process(session, question))
    queue = InterventionQueue(home, max_size=2)
    first = queue.put(request(1)).intervention_id
    queue.resolve(str(first), "a new key", by="ada")
    for number in (2, 3, 4):
        queue.put(request(number))
    for user in ("anna", "anna@example.org"):
        memory_store(home).create(user, f"Is called {user}")
    grant_store(home).add(Grant(tool="file.write", session_id=None, by="ada"))
    with closing(open_store(home, GuardrailSettings())) as rules:
        rules.change("ada", lambda own: own.model_copy(update={"flagged_keywords": ("spam",)}))
    return home


def take_over(source: Path, shared_home: Path) -> tuple[int, dict, str]:
    words = ["shared", "import", str(source), "--json", "--home", str(shared_home)]
    outcome = runner.invoke(app, words)
    found = json.loads(outcome.stdout) if outcome.exit_code == 0 else {}
    return outcome.exit_code, found, outcome.stderr


def test_all_that_a_home_has_is_in_the_database_then(
    source: Path, shared_home: Path, database: Database
) -> None:
    code, found, said = take_over(source, shared_home)
    assert code == 0, said
    assert not found["earlier"]
    counts = {part["kind"]: part["count"] for part in found["parts"]}
    assert counts == dict(zip([*KINDS, "rules"], [3, 2, 1, 1, 3, 2, 1, 1], strict=True))
    here, there = InterventionQueue(source), queue_at(shared_home)
    assert there.entries() == here.entries()
    assert there.history() == here.history()
    assert there.health() == here.health()
    assert there.store.waiting()[0] == 1
    assert there.turns_needed() == here.turns_needed() == {2, 3, 4}
    with closing(session_store(source)) as alone:
        together = session_store(shared_home)
        for text in ("named bus", "one"):
            found_alone = alone.search("a", text, before=99, limit=5)
            assert together.search("a", text, before=99, limit=5) == found_alone
        assert together.sessions(9) == alone.sessions(9)
    for user in ("anna", "anna@example.org"):
        assert memory_store(shared_home).all(user) == memory_store(source).all(user)
    assert grant_store(shared_home).all() == grant_store(source).all()
    turns = PostgresTurnStore(database)
    files = FileTurnStore(source / "shared_state/turns")
    for turn_id in (1, 2, 3):
        assert wait_for(turns.read(turn_id)) == wait_for(files.read(turn_id))
    lease = wait_for(turns.create())
    assert lease.turn_id == 4
    wait_for(lease.release())


def test_a_second_time_nothing_is_taken_over(source: Path, shared_home: Path) -> None:
    _, first, _ = take_over(source, shared_home)
    queue_at(shared_home).resolve("last", "done")
    code, again, _ = take_over(source, shared_home)
    assert code == 0
    assert again["earlier"]
    assert again["parts"] == first["parts"]
    assert queue_at(shared_home).find("last")["resolution"] == "done"
    assert queue_at(shared_home).health()["accepted"] == 3


def test_of_two_at_once_one_takes_over(source: Path, shared_home: Path) -> None:
    words = ["shared", "import", str(source), "--json", "--home", str(shared_home)]
    command = [sys.executable, "-m", "unified_flow", *words]
    processes = [Process(command, stdout=PIPE, stderr=PIPE, text=True) for _ in range(2)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    assert 0 in [code for *_, code in ended], ended
    assert queue_at(shared_home).health()["accepted"] == 3
    assert take_over(source, shared_home)[1]["earlier"]


def test_a_database_in_use_and_a_home_in_use_are_refused(source: Path, shared_home: Path) -> None:
    with FairLock(lock_file(source)).hold(5):
        code, _, said = take_over(source, shared_home)
        assert (code, "somebody writes" in said) == (5, True)
    files = FileTurnStore(source / "shared_state/turns")
    lease = wait_for(files.open(2))
    code, _, said = take_over(source, shared_home)
    assert (code, "turn 2 is running" in said) == (5, True)
    wait_for(lease.release())
    queue_at(shared_home).put(request(9))
    code, _, said = take_over(source, shared_home)
    assert code == 5
    assert "has interventions already" in said
    assert queue_at(shared_home).open_count() == 1


def test_a_home_may_take_longer_to_read_than_the_server_waits_for_others(
    source: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "-c timezone=UTC -c idle_in_transaction_session_timeout=1ms"
    monkeypatch.setitem(SESSION, "options", options)
    code, _, said = take_over(source, shared_home)
    assert code == 0, said


def test_before_the_tables_are_made_it_says_how_to_make_them(
    source: Path, home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres_url)
    (home / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
    code, _, said = take_over(source, home)
    assert code == 2
    assert "unified-flow shared migrate" in said


def test_a_damaged_turn_is_told_and_nothing_is_taken_over(source: Path, shared_home: Path) -> None:
    journal = source / "shared_state/turns/turn_000002/journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"two?", b"2wo?"))
    code, _, said = take_over(source, shared_home)
    assert code != 0
    assert "turn_000002" in said
    assert "damaged" in said
    assert queue_at(shared_home).entries() == ()
    assert memory_store(shared_home).all("anna") == []


def test_a_home_of_the_first_version_moves_in(shared_home: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(REPOSITORY / "tests/compat/v0_1", old)
    code, found, said = take_over(old, shared_home)
    assert code == 0, said
    counts = {part["kind"]: part["count"] for part in found["parts"]}
    assert all(counts[kind] for kind in ("turns", "interventions", "sessions"))


def test_a_user_with_other_rules_is_named_and_nothing_is_taken_over(
    source: Path, shared_home: Path
) -> None:
    with closing(open_store(source, GuardrailSettings())) as rules:
        rules.change("abe", lambda own: own.model_copy(update={"flagged_keywords": ("ham",)}))
    with closing(open_store(shared_home, GuardrailSettings())) as rules:
        rules.change("ada", lambda own: own.model_copy(update={"flagged_keywords": ("eggs",)}))
        code, _, said = take_over(source, shared_home)
        assert code == 5
        assert "ada has other rules" in said
        assert [each.user_id for each in rules.all_rules()] == ["ada"]
    assert queue_at(shared_home).entries() == ()
    with closing(open_store(source, GuardrailSettings())) as theirs:
        theirs.delete("ada")
    assert take_over(source, shared_home)[0] == 0
