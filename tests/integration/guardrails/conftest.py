from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.moderation_server import ModerationServer
from unified_flow.config.tables import GuardrailSettings
from unified_flow.guardrails.guardrails import open_store
from unified_flow.guardrails.store import GuardrailStore


@pytest.fixture
def moderation() -> Iterator[ModerationServer]:
    with ModerationServer({"insult": {"harassment": 0.91}}) as server:
        yield server


@pytest.fixture
def rules(
    home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GuardrailStore]:
    """The store of the flows at `home`: a file, or PostgreSQL for tests that run `on_both`."""
    settings = GuardrailSettings()
    if getattr(request, "param", "sqlite") == "postgresql":
        settings = GuardrailSettings(database_url_env="RULES_URL")
        monkeypatch.setenv("RULES_URL", request.getfixturevalue("postgres_url"))
        monkeypatch.setenv("UNIFIED_FLOW_GUARDRAILS__DATABASE_URL_ENV", "RULES_URL")
    store = open_store(home, settings)
    yield store
    store.close()


@pytest.fixture(autouse=True)
def _all_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "unified_flow.guardrails")
