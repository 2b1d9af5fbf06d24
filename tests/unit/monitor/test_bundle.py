"""What an exported file may hold, and what of it is called a known fix."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interventions.errors import QueueError
from interventions.view.description import describe
from monitor.core.source import BundleSource

NOW = datetime(2026, 3, 14, tzinfo=UTC)
ENTRY: dict[str, Any] = {
    "id": "int_1_aaaaaa",
    "created_at": "2026-01-01T00:00:00Z",
    "fingerprint": "f",
}
RESOLVED = {"resolutions": [{"kind": "resolved", "note": "restarted it"}]}


def _source(path: Path, **fields: Any) -> BundleSource:
    path.write_text(json.dumps({"intervention": ENTRY, **fields}))
    return BundleSource(path, lambda: NOW)


def test_only_what_was_resolved_is_a_known_fix(tmp_path: Path) -> None:
    similar = [
        ENTRY | {"id": "never"},
        ENTRY | RESOLVED | {"id": "mended"},
        ENTRY | RESOLVED | {"id": "other", "fingerprint": "g"},
    ]
    journal = [{"id": ENTRY["id"], "after": 3}, 5, {"id": "other"}]
    source = _source(tmp_path / "b.json", similar=similar, journal=journal)
    background = source.background(ENTRY["id"])
    assert [entry["id"] for entry in background.past] == ["mended"]
    (entry,) = source.read().entries
    assert describe(entry, list(background.past), list(background.journal), NOW)


@pytest.mark.parametrize("fields", [{"similar": 5}, {"similar": [5]}, {"journal": 5}])
def test_what_is_none_is_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(QueueError, match="no exported intervention"):
        _source(tmp_path / "b.json", **fields)
