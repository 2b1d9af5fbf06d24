"""A migrated database, and homes that share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.fixtures import VARIABLE
from unified_flow.shared.database import Database


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, "the database of the test")
    yield opened
    opened.close()


@pytest.fixture
def shared_home(home: Path, database_url: str) -> Path:
    (home / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
    return home
