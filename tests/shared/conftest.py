"""A migrated database, and homes that share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers.postgres import new_database
from unified_flow.shared.database import Database
from unified_flow.shared.migration import migrate

VARIABLE = "FLOW_DATABASE_URL"


@pytest.fixture(scope="session")
def migrated(postgres: str) -> Iterator[str]:
    """A database with all tables, to make others from: to migrate one takes a second."""
    with new_database(postgres) as url:
        migrate(Database(url, "the template"))
        yield url


@pytest.fixture
def database_url(postgres: str, migrated: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a new database with all tables, which the environment names."""
    template = psycopg.conninfo.conninfo_to_dict(migrated)["dbname"]
    with new_database(postgres, template=str(template)) as url:
        monkeypatch.setenv(VARIABLE, url)
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, "the database of the test")
    yield opened
    opened.close()


@pytest.fixture
def shared_home(home: Path, database_url: str) -> Path:
    (home / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
    return home
