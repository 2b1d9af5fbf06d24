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
