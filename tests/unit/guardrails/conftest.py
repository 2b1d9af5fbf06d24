from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unified_flow.guardrails.database import Database
from unified_flow.guardrails.store import GuardrailStore


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        made = Database.of_file(tmp_path / "state" / "guardrails.sqlite3")
    else:
        url = request.getfixturevalue("postgres_url")
        made = Database.of_variable("RULES_URL", {"RULES_URL": url})
    yield made
    made.close()


@pytest.fixture
def store(database: Database, tmp_path: Path) -> GuardrailStore:
    return GuardrailStore(database, tmp_path / "aside.jsonl")
