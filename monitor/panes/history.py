"""What was closed, the latest first. A long past is not gone through for every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from interventions.durations import short_duration
from interventions.entry import Entry, closed_at
from interventions.timestamps import from_text
from monitor.core import listing
from monitor.core.model import Model
from monitor.core.row_cache import RowCache, minute
from monitor.core.rows import Row
from monitor.panes.tab import Tab

MOST_HISTORY = 500


@dataclass(frozen=True)
class _Shown:
    entry: Entry
    closed: datetime
    ago: str
    marked: bool
    row: Row


class HistoryTab(Tab):
    name = "history"
    title = "History"
    columns = listing.HISTORY_COLUMNS
    of_entries = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._marked: set[str] = set()
        # What was found and made last: a long past is not gone through for every key, and of one
        # that grows only what is new.
        self._of: tuple[object, object] = (None, None)
        self._found: list[Entry] = []
        self._judged: dict[str, tuple[Entry, bool]] = {}
        self._shown_now: dict[str, _Shown] = {}
        self._made = RowCache()

    def rows(self, now: datetime) -> list[Row]:
        of = (self._matching(now), frozenset(self._marked))
        return self._made.rows(of, now, lambda: self._make(now))

    def _make(self, now: datetime) -> tuple[list[Row], list[datetime]]:
        shown: dict[str, _Shown] = {}
        for entry in self._shown(now):
            own, marked = entry["id"], entry["id"] in self._marked
            known = self._shown_now.get(own)
            same = known is not None and known.entry is entry
            closed = known.closed if known and same else _closed(entry)
            ago = short_duration(now - closed)
            if known and same and (known.ago, known.marked) == (ago, marked):
                shown[own] = known
            else:
                row = listing.history_row(entry, ago, now, marked=marked)
                shown[own] = _Shown(entry, closed, ago, marked, row)
        self._shown_now = shown
        return [one.row for one in shown.values()], [one.closed for one in shown.values()]

    def _shown(self, now: datetime) -> list[Entry]:
        return self._matching(now)[:MOST_HISTORY]

    def _matching(self, now: datetime) -> list[Entry]:
        """The same list as long as nothing came and no age in the query may have become true."""
        query, past = self.model.view.query, self._everything()
        asked = (query.text, minute(now))
        if asked != self._of[1]:
            self._judged = {}
        elif past is self._of[0]:
            return self._found
        if query.tests:
            before, judged = self._judged, {}
            for entry in past:
                known = before.get(entry["id"])
                if known is None or known[0] is not entry:
                    known = (entry, query.matches(entry, now))
                judged[entry["id"]] = known
            self._judged = judged
            self._found = [entry for entry, matches in judged.values() if matches]
        else:
            self._found = list(past)
        self._of = (past, asked)
        return self._found

    def marked_entries(self) -> list[Entry]:
        if not self._marked:
            return []
        return [entry for entry in self._everything() if entry["id"] in self._marked]

    def marked_and_hidden(self, now: datetime) -> int:
        shown = {entry["id"] for entry in self._shown(now)}
        return sum(1 for entry in self.marked_entries() if entry["id"] not in shown)

    def mark(self, key: str) -> None:
        self._marked ^= {key}

    def mark_all(self, now: datetime) -> None:
        shown = {entry["id"] for entry in self._shown(now)}
        self._marked = self._marked - shown if shown <= self._marked else self._marked | shown

    def unmark(self) -> bool:
        found, self._marked = bool(self.marked_entries()), set()
        return found

    def remark(self) -> str:
        count = len(self.marked_entries())
        return f"({count} marked)" if count else ""

    def more(self) -> str:
        left = len(self._found) - MOST_HISTORY
        if left <= 0:
            return ""
        return f"and {left} older ones, which a filter finds, or: interventions history QUERY"

    def _nothing(self) -> tuple[str, str, str]:
        return ("No history", "nothing was closed yet", "")

    def entries(self, key: str) -> Sequence[Entry]:
        found = self._shown_now.get(key)
        return [found.entry] if found is not None else []

    def _everything(self) -> Sequence[Entry]:
        return self.feed.history if self.feed else ()


def _closed(entry: Entry) -> datetime:
    return from_text(closed_at(entry) or entry["last_seen"])
