"""`unified-flow shared check` on databases that can, and cannot, carry the shared mode."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from freezegun import freeze_time
from psycopg import sql
from typer.testing import CliRunner

from tests.servers.pooler import transaction_pooler
from unified_flow.cli.app import app
from unified_flow.shared import database_check

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
    check: Check, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_check, "NOTIFIED_WITHIN_S", 1.0)
    with transaction_pooler(database_url) as url:
        monkeypatch.setenv("FLOW_DATABASE_URL", url)
        found = check(1)
    for name in ("session", "notifications"):
        assert not found[name]["ok"]
        assert "session pooling" in found[name]["hint"]


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


def test_a_role_that_may_not_use_the_tables(
    check: Check, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = "reader_of_the_check"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        try:
            monkeypatch.setenv("FLOW_DATABASE_URL", database_url.replace("postgres:@", f"{role}@"))
            found = check(1)
        finally:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
    assert not found["privileges"]["ok"]
    assert "GRANT SELECT" in found["privileges"]["hint"]


def test_clocks_that_are_minutes_apart_are_said(check: Check, index: None) -> None:
    three_minutes_ago = datetime.now(UTC) - timedelta(minutes=3)
    with freeze_time(three_minutes_ago, tick=True):
        told = re.search(r"(\d+) s behind", check(0)["clock"]["message"])
    assert told is not None
    assert 180 <= int(told[1]) < 240  # the clock may be set a moment after it was read
