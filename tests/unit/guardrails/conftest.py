from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unified_flow.guardrails.sql_database import SqlDatabase
from unified_flow.guardrails.store import GuardrailStore


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlDatabase]:
    if request.param == "sqlite":
        made = SqlDatabase.of_file(tmp_path / "state" / "guardrails.sqlite3")
    else:
        url = request.getfixturevalue("postgres_url")
        made = SqlDatabase.of_variable("RULES_URL", {"RULES_URL": url})
    yield made
    made.close()


@pytest.fixture
def store(database: SqlDatabase, tmp_path: Path) -> GuardrailStore:
    return GuardrailStore(database, tmp_path / "outbox.jsonl")
