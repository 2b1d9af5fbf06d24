"""`unified-flow shared check` on databases that can, and cannot, carry the shared mode."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from freezegun import freeze_time
from typer.testing import CliRunner

from interventions.queue import queue_at
from tests.forked import Process
from tests.servers.pooler import transaction_pooler
from tests.shared.conftest import LIMIT_S, WORKER
from tests.shared.test_queue import request
from unified_flow.cli.app import app
from unified_flow.shared.database import Database

runner = CliRunner()
Check = Callable[..., dict[str, Any]]


@pytest.fixture
def check(shared_home: Path) -> Check:
    def run(code: int) -> dict[str, Any]:
        outcome = runner.invoke(app, ["shared", "check", "--json", "--home", str(shared_home)])
        assert outcome.exit_code == code, outcome.output
        found = json.loads(outcome.stdout)
        assert found["ok"] == (code == 0)
        return {each["name"]: each for each in found["checks"]}

    return run


@pytest.fixture
def index(shared_home: Path, docs: Path) -> None:
    outcome = runner.invoke(app, ["index", str(docs), "--home", str(shared_home)])
    assert outcome.exit_code == 0, outcome.output


def test_all_is_well(check: Check, shared_home: Path, index: None) -> None:
    found = check(0)
    assert "PostgreSQL" in found["server"]["message"]
    assert "MB of the collection documents" in found["index"]["message"]
    shown = runner.invoke(app, ["shared", "check", "--home", str(shared_home)]).stdout
    assert shown.count("✓") == len(found)


def test_a_pooler_by_transactions_is_found_out(
    check: Check, database_url: str, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a worker, which would wait for ever for locks that others hold in its name."""
    with transaction_pooler(database_url) as url:
        monkeypatch.setenv("FLOW_DATABASE_URL", url)
        found = check(1)
        worker = runner.invoke(app, ["worker", "--home", str(shared_home)])
    assert worker.exit_code == 2
    assert "session pooling" in worker.stderr
    assert not found["session"]["ok"]
    assert "session pooling" in found["session"]["hint"]


def test_a_server_that_is_away_is_said_without_its_url(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_DATABASE_URL", "postgresql://ada:hunter2@127.0.0.1:1/flow")
    found = check(4)
    assert list(found) == ["server"]
    assert "hunter2" not in str(found)


def test_without_the_setting_it_says_what_to_write(home: Path) -> None:
    outcome = runner.invoke(app, ["shared", "check", "--home", str(home)])
    assert outcome.exit_code == 2
    assert "database_url_env" in outcome.stderr


def test_tables_that_are_not_there_or_old(
    check: Check, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_DATABASE_URL", postgres_url)
    found = check(1)
    assert not found["tables"]["ok"]
    assert "unified-flow shared migrate" in found["tables"]["hint"]


@pytest.fixture
def role(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """The environment names a role that may do nothing; the session may grant it more."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        monkeypatch.setenv("FLOW_DATABASE_URL", database_url.replace("postgres:@", "reader@"))
        yield connection
        connection.execute("DROP OWNED BY reader")
        connection.execute("DROP ROLE reader")


def test_a_role_that_was_granted_what_it_says_may_use_the_tables(
    check: Check, role: psycopg.Connection, shared_home: Path
) -> None:
    lacking = check(1)["privileges"]
    assert not lacking["ok"]
    role.execute(lacking["hint"])
    assert check(1)["privileges"]["ok"]  # there is no index
    assert queue_at(shared_home).put(request(1)).intervention_id
    role.execute("REVOKE USAGE ON SCHEMA dbos FROM reader")
    assert "schema dbos" in check(1)["privileges"]["message"]


@pytest.mark.parametrize("words", [["ask", "What is a turn?"], ["shared", "migrate"]])
def test_a_role_that_may_not_is_told_so(
    words: list[str], role: psycopg.Connection, shared_home: Path
) -> None:
    role.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    outcome = runner.invoke(app, [*words, "--home", str(shared_home)])
    assert outcome.exit_code == 2
    assert "the role may not use the database" in outcome.stderr
    assert "unified-flow shared check" in outcome.stderr


def test_a_server_that_takes_no_writes_is_found_out(
    check: Check, role: psycopg.Connection, shared_home: Path
) -> None:
    """As a standby does not, which a URL may name after a failover."""
    role.execute("ALTER ROLE reader SET default_transaction_read_only = on")
    assert "primary" in check(1)["server"]["hint"]
    outcome = runner.invoke(app, ["ask", "What is a turn?", "--home", str(shared_home)])
    assert "unified-flow shared check" in outcome.stderr


def test_tables_of_dbos_that_are_missing_or_old_and_tables_of_a_newer_version(
    check: Check, database: Database, shared_home: Path
) -> None:
    database.row("UPDATE shared_version SET version_num = '9999' RETURNING 1")
    assert "install" in check(1)["tables"]["hint"]
    newer = runner.invoke(app, ["shared", "migrate", "--home", str(shared_home)])
    assert newer.exit_code == 2
    assert "at 9999" in newer.stderr
    database.row("UPDATE shared_version SET version_num = '0001' RETURNING 1")
    with database.connection() as connection:
        connection.execute("UPDATE dbos.dbos_migrations SET version = 1")
        assert "DBOS" in check(1)["tables"]["message"]
        connection.execute("DROP SCHEMA dbos CASCADE")
    assert "shared migrate" in check(1)["tables"]["hint"]
    outcome = Process(
        [*WORKER, "--home", str(shared_home)], stderr=subprocess.PIPE, text=True
    ).communicate(timeout=LIMIT_S)
    assert "unified-flow shared migrate" in outcome[1]
    assert "Traceback" not in outcome[1]


def test_clocks_that_are_minutes_apart_are_said(check: Check, index: None) -> None:
    three_minutes_ago = datetime.now(UTC) - timedelta(minutes=3)
    with freeze_time(three_minutes_ago, tick=True):
        told = re.search(r"(\d+) s behind", check(0)["clock"]["message"])
    assert told is not None
    assert 180 <= int(told[1]) < 240  # the clock may be set a moment after it was read
