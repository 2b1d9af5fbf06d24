"""Fixtures for tests that need a server: import them into a conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.model_server import ModelServer


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A running ModelServer with an empty script; the test fails if the server itself did."""
    with ModelServer() as server:
        yield server
    assert server.problems == []


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
