"""One service for all tests that leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.service import Service, serving

TOPICS = (
    "# Robots\n\n## Topics\n\nA topic is a named bus over which nodes exchange messages. "
    "Topics are for continuous data streams such as sensor data, and any number of nodes may "
    "publish on one or listen to it at the same time.\n\n"
    "## Services\n\nA service is a remote procedure call between two nodes. Services must return "
    "quickly and are not for long-running work, for which there are actions with feedback.\n"
)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The embedded model over a small folder; no limit of the rate."""
    place = tmp_path_factory.mktemp("service")
    docs = place / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text(TOPICS)
    with serving(place / "home", docs=docs, settings='[serve]\nrate_limit = "off"\n') as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return place
