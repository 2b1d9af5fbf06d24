"""Fixtures for tests that need a server: import them into a conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.servers.model_server import ModelServer

VARIABLE = "FLOW_DATABASE_URL"
# What a process of its own runs first for what `one_thread` does.
ONE_THREAD = "import os\nos.sched_getaffinity = lambda _: {0}\n"


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A running ModelServer with an empty script; the test fails if the server itself did."""
    with ModelServer() as server:
        yield server
    assert server.problems == []


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """llama.cpp computes with one thread. Beside other tests two mostly wait for each other, which
    costs as much as to compute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.sched_getaffinity", lambda _: {0})
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL that runs for the rest of the session: its start takes seconds."""
    from tests.servers.postgres import postgres_server

    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """The URL of an empty database of it."""
    from tests.servers.postgres import new_database

    with new_database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def migrated(postgres: str) -> Iterator[str]:
    """A database with all tables of shared mode, to make others from: to migrate one takes a
    second."""
    from tests.servers.postgres import new_database
    from unified_flow.shared.database import Database
    from unified_flow.shared.migration import migrate

    with new_database(postgres) as url:
        with closing(Database(url, "the template")) as database:
            migrate(database)
        yield url


@pytest.fixture
def database_url(postgres: str, migrated: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a new database with all tables, which the environment names."""
    from psycopg.conninfo import conninfo_to_dict

    from tests.servers.postgres import new_database

    template = conninfo_to_dict(migrated)["dbname"]
    with new_database(postgres, template=str(template)) as url:
        monkeypatch.setenv(VARIABLE, url)
        yield url
