"""The documentation of real projects, as their source distributions hold it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "corpora"  # where `make corpora` unpacks them
# By project, the part of its distribution that is written for readers.
DOCUMENTATION = {
    "django": ("Django-*", "docs"),
    "sqlalchemy": ("sqlalchemy-*", "doc/build"),
    "click": ("click-*", "docs"),
    "httpx": ("httpx-*", "."),
}


@pytest.fixture(params=DOCUMENTATION, scope="session")
def documentation(request: pytest.FixtureRequest) -> Path:
    """The root of one project's documentation; a test that takes it runs once for each."""
    distribution, part = DOCUMENTATION[request.param]
    found = list(FOLDER.glob(distribution))
    assert len(found) == 1, f"{distribution} is not in {FOLDER}: run `make corpora`"
    return found[0] / part
