"""`trace` knows the requests of all machines; each has its own file of them all the same."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from subprocess import run

import pytest
from typer.testing import CliRunner

from interventions.times import utc_now
from tests.servers.fixtures import VARIABLE
from unified_flow.cli.app import app
from unified_flow.engine.telemetry.query_log import QueryLog, RequestLine

WRITER = """
import sys
from pathlib import Path
from unified_flow.engine.telemetry.query_log import QueryLog, RequestLine
log = QueryLog.of(Path(sys.argv[1]))
log.append(RequestLine.without_turn("r-1", "fail_fast", refused=False))
"""


@pytest.fixture
def elsewhere(shared_home: Path, tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "unified_flow.toml").write_text((shared_home / "unified_flow.toml").read_text())
    return place


def test_a_request_to_another_machine_is_traced(shared_home: Path, elsewhere: Path) -> None:
    run([sys.executable, "-c", WRITER, str(elsewhere)], check=True)
    (line,) = QueryLog.of(shared_home).of_request("r-1")
    assert line == RequestLine.model_validate_json(
        (elsewhere / "logs/rag_queries.jsonl").read_bytes()
    )
    traced = CliRunner().invoke(app, ["trace", "r-1", "--json", "--home", str(shared_home)])
    assert json.loads(traced.stdout)["requests"][0]["status"] == "served"
    assert list(QueryLog.of(shared_home).of_request("r-2")) == []
    QueryLog.of(shared_home).forget(utc_now() + timedelta(days=1))
    assert list(QueryLog.of(shared_home).of_request("r-1")) == []
    assert list(QueryLog.of(elsewhere).of_request("r-1")) == [line], "its file has it still"


def test_no_answer_waits_for_a_database_that_is_away(
    shared_home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://nobody@127.0.0.1:1/flow")
    run([sys.executable, "-W", "error", "-c", WRITER, str(shared_home)], check=True)
    monkeypatch.setenv(VARIABLE, database_url)
    assert [each.request_id for each in QueryLog.of(shared_home).of_request("r-1")] == ["r-1"]
