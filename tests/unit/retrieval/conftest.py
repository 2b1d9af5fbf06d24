"""A folder of documents and an index of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unified_flow.retrieval.index import Index


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "state" / "index") as opened:
        yield opened
