"""What the triage screen shows and what is chosen in it, without a single widget."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from interventions.entry import Entry, is_open
from interventions.errors import QueryError
from interventions.timestamps import from_text
from interventions.view.grouping import Group
from interventions.view.query import parse
from monitor.core.listing import Sort, View, select
from monitor.core.snapshot import Snapshot

NEW_FOR = timedelta(minutes=10)


@dataclass
class Model:
    """`new` are ids that came lately and were not looked at yet."""

    snapshot: Snapshot
    view: View = field(default_factory=lambda: View(parse("")))
    marked: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    held: Snapshot | None = None
    paused: bool = False
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        now = self.snapshot.taken_at
        self.new = {
            entry["id"]
            for entry in self.snapshot.open_entries
            if now - from_text(entry["created_at"]) < NEW_FOR
        }
        self._known = {entry["id"] for entry in self.snapshot.entries}

    def take(self, snapshot: Snapshot) -> None:
        """The queue as it is now; while paused it is only counted."""
        if self.paused:
            self.held = snapshot
            return
        self.held = None
        if snapshot.trouble is not None and not snapshot.entries and self.snapshot.entries:
            # What was last read stays in sight, under a notice.
            snapshot = replace(snapshot, entries=self.snapshot.entries, health=self.snapshot.health)
        self.snapshot = snapshot
        self.new |= {entry["id"] for entry in snapshot.open_entries} - self._known
        self._known = {entry["id"] for entry in snapshot.entries}
        still_open = {entry["id"] for entry in snapshot.open_entries}
        self.new &= still_open
        self.marked &= still_open

    def patch(self, entries: Sequence[Entry]) -> None:
        """What was changed from here is shown at once, even while the list is held still."""
        changed = {entry["id"]: entry for entry in entries}
        current = tuple(changed.get(entry["id"], entry) for entry in self.snapshot.entries)
        self.snapshot = replace(self.snapshot, entries=current)
        self.marked -= set(changed)

    def counted(self) -> str:
        """How many are open, and how many of them are marked."""
        count = str(len(self.snapshot.open_entries))
        return f"{count} ({len(self.marked)} marked)" if self.marked else count

    def pause(self) -> None:
        self.paused = not self.paused
        if not self.paused and self.held is not None:
            self.take(self.held)

    @property
    def held_back(self) -> int | None:
        """How many came since the pause; None when nothing is held."""
        if not self.paused:
            return None
        later = self.held.open_entries if self.held is not None else []
        return len({entry["id"] for entry in later} - self._known)

    def groups(self, now: datetime) -> list[Group]:
        view = self.view
        if self.snapshot.of_all_states:
            view = replace(view, query=replace(view.query, names_state=True))
        return select(self.snapshot.entries, view, now)

    def find(self, intervention_id: str) -> Entry | None:
        return next((e for e in self.snapshot.entries if e["id"] == intervention_id), None)

    def alike(self, entry: Entry) -> list[Entry]:
        """Other open entries with the same fingerprint."""
        own = entry["fingerprint"]
        return [
            other
            for other in self.snapshot.entries
            if own and other["fingerprint"] == own and other["id"] != entry["id"] and is_open(other)
        ]

    def mark(self, ids: set[str]) -> None:
        """Turn the marks; what is marked in part becomes marked whole."""
        self.marked = self.marked - ids if ids <= self.marked else self.marked | ids

    def sort(self, sort: Sort) -> None:
        self.view = self.view.sorted_by(sort)

    def fold(self, current: Entry | None) -> str:
        """Fold or unfold; the key of the row in which the current entry is then."""
        self.view = replace(self.view, folded=not self.view.folded)
        if current is None:
            return ""
        fingerprint: str = current["fingerprint"]
        return fingerprint if self.view.folded and fingerprint else str(current["id"])

    def filter(self, text: str) -> None:
        """Raises QueryError; the terms before the one that cannot be meant hold in any case."""
        try:
            query = parse(text)
        except QueryError:
            with suppress(QueryError):
                self.view = replace(self.view, query=parse(text.rpartition(" ")[0]))
            raise
        self.view = replace(self.view, query=query)
