"""What stands before a row of several failures that are alike, in the list and in the monitor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interventions.cli.entries import table
from interventions.entry import Entry, complete
from interventions.view.groups import Group, marks
from monitor.core.model import TriageModel
from monitor.core.source import Snapshot
from monitor.screens.tabs import BADGES, OpenTab

NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)
CREATED = "2026-03-14T15:00:00Z"
SLEEPS = {"snoozed_until": "2026-03-15T00:00:00Z"}


def _entry(number: int, **fields: Any) -> Entry:
    return complete({"id": f"int_1_{number:06x}", "created_at": CREATED, **fields})


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        (({}, {"regression_of": "int_1_b"}), ["REGRESSION"]),
        ((SLEEPS, {}), []),
        ((SLEEPS, SLEEPS), ["SNOOZED"]),
        (({"superseded": "x"}, {}), []),
        (({"superseded": "x"}, {"superseded": "x"}), ["SUPERSEDED"]),
        (({"resolved_at": CREATED},), ["RESOLVED"]),
        (({"dismissed_at": CREATED, "regression_of": "b"},), ["REGRESSION", "DISMISSED"]),
    ],
)
def test_both_faces_say_the_same(members: tuple[dict[str, Any], ...], shown: list[str]) -> None:
    group = Group("key", tuple(_entry(n, **fields) for n, fields in enumerate(members)))
    told = marks(group, NOW)
    assert [word for word in told if word.isupper()] == shown
    cells = OpenTab(TriageModel(Snapshot(NOW))).cells(group)
    badges = [word for cell in cells for word, _ in cell.badges]
    assert badges == [*([f"▸{len(members)}"] * (len(members) > 1)), *(BADGES[w][0] for w in shown)]
    assert " ".join(marks(group, NOW, new=group.is_new(NOW))) in table([group], 200, NOW)[1]
