"""What the rows of entries show, and which of a long past are rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from interventions.entry import Entry, complete
from interventions.times import to_text
from interventions.view.groups import single
from monitor.core.feeds import Feed
from monitor.core.model import TriageModel
from monitor.core.source import Snapshot
from monitor.screens.tabs import HistoryTab, OpenTab

NOW = datetime(2026, 3, 14, 15, 9, 10, tzinfo=UTC)


def _entry(number: int, ago: timedelta, **fields: Any) -> Entry:
    created = to_text(NOW - ago)
    return complete({"id": f"int_1_{number:06x}", "created_at": created, **fields})


def _closed(number: int, ago: timedelta) -> Entry:
    error = f"Error{number}"
    return _entry(number, ago, resolved_at=to_text(NOW - ago), error_type=error)


def test_open_rows_follow_a_change_a_mark_and_the_time() -> None:
    old = _entry(1, timedelta(hours=2))
    tab = OpenTab(TriageModel(Snapshot(NOW, (old,))))
    first = tab.rows(NOW)
    assert tab.rows(NOW + timedelta(seconds=30)) == first
    assert tab.rows(NOW + timedelta(hours=1)) != first
    assert tab.rows(NOW)[0].cells[2].text == "2h"
    tab.toggle_marks(first[0].entries)
    assert tab.rows(NOW)[0].cells[0].text == "✓"
    tab.model.update(Snapshot(NOW, (old, _entry(2, timedelta(hours=3)))))
    assert len(tab.rows(NOW)) == 2
    tab.model.filter("id:000001")
    assert len(tab.rows(NOW)) == 1


def test_a_young_row_counts_its_seconds() -> None:
    tab = OpenTab(TriageModel(Snapshot(NOW, (_entry(1, timedelta(seconds=5)),))))
    assert [tab.rows(NOW + timedelta(seconds=s))[0].cells[2].text for s in (0, 1, 60)] == [
        "5s",
        "6s",
        "1m",
    ]


def test_closed_rows_follow_a_change_a_mark_and_the_time() -> None:
    """A row is made anew only when its entry has another version."""
    old = _closed(1, timedelta(hours=2))
    again = complete({**old, "version": old["version"] + 1, "resolution": "a typo"})
    tab = HistoryTab(TriageModel(Snapshot(NOW)))
    tab.feed = Feed("history", single([old]))
    first = tab.rows(NOW)
    tab.toggle_marks(first[0].entries)
    mark, age, *rest = tab.rows(NOW + timedelta(hours=1))[0].cells
    assert (mark.text, age.text, tuple(rest)) == ("✓", "3h", first[0].cells[2:])
    tab.feed = Feed("history", single([again]))
    assert tab.rows(NOW)[0].cells[-1].text == "a typo"


def test_of_a_long_past_the_latest_are_rows_and_the_filter_finds_all() -> None:
    past = [_closed(n, timedelta(hours=n + 1)) for n in range(600)]
    tab = HistoryTab(TriageModel(Snapshot(NOW)))
    tab.feed = Feed("history", single(past))
    first = tab.rows(NOW)
    assert len(first) == 500
    assert "100 older: " in tab.notice()
    new = _closed(601, timedelta(seconds=1))
    tab.feed = Feed("history", single([new, *past]))
    rows = tab.rows(NOW)
    assert rows[0].key == new["id"]
    assert rows[1:] == first[:-1]
    assert tab.shown[new["id"]].entries == (new,)
    tab.model.filter("error:error599")
    assert [row.key for row in tab.rows(NOW)] == [past[-1]["id"]]
