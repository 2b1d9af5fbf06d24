"""What waits: a row for each group of open interventions that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from textual.content import Content

from interventions.entry import Entry
from interventions.timestamps import from_text
from interventions.view.grouping import Group
from monitor.core import listing
from monitor.core.model import Model
from monitor.core.row_cache import RowCache
from monitor.core.rows import Row
from monitor.panes.tab import Tab
from monitor.states import why_empty


class OpenTab(Tab):
    name = "open"
    title = "Open"
    columns = listing.OPEN_COLUMNS
    of_entries = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._groups: Sequence[Group] = ()
        self._made = RowCache()

    def rows(self, now: datetime) -> list[Row]:
        model = self.model
        of = (model.snapshot, model.view, frozenset(model.marked), frozenset(model.new))
        return self._made.rows(of, now, lambda: self._make(now))

    def _make(self, now: datetime) -> tuple[list[Row], list[datetime]]:
        self._groups = self.model.groups(now)
        new, marked = self.model.new, self.model.marked
        rows = [listing.open_row(group, now, new=new, marked=marked) for group in self._groups]
        return rows, [from_text(group.first["created_at"]) for group in self._groups]

    def why_empty(self) -> Content:
        return why_empty(self.model.snapshot, self.model.view.query.text)

    def entries(self, key: str) -> Sequence[Entry]:
        return next((group.entries for group in self._groups if group.key == key), ())

    def marked_entries(self) -> list[Entry]:
        if not self.model.marked:
            return []
        return [entry for entry in self.model.snapshot.entries if entry["id"] in self.model.marked]

    def marked_and_hidden(self, now: datetime) -> int:
        if not self.model.marked:
            return 0
        shown = {entry["id"] for group in self.model.groups(now) for entry in group.entries}
        return len(self.model.marked - shown)

    def mark(self, key: str) -> None:
        self.model.mark({entry["id"] for entry in self.entries(key)})

    def mark_all(self, now: datetime) -> None:
        groups = self.model.groups(now)
        self.model.mark({entry["id"] for group in groups for entry in group.entries})

    def unmark(self) -> bool:
        found, self.model.marked = bool(self.model.marked), set()
        return found

    def remark(self) -> str:
        return self.model.counted()
