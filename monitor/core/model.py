"""What the triage screen shows and what is chosen in it, without a widget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from interventions.entry import (
    Entry,
    MergedFailure,
    is_open,
    is_snoozed,
    severity_rank,
    worst_first,
)
from interventions.errors import QueryError
from interventions.plaintext import one_line
from interventions.view.groups import Group, grouped, is_new, last_news, other_words, single
from interventions.view.query import Query, parse
from monitor.core.looked import Look
from monitor.core.source import Snapshot


class Sort(StrEnum):
    SEVERITY = "severity"
    LAST = "last"
    FIRST = "first"
    COUNT = "count"


_ORDERS: dict[Sort, Callable[[Group], Any]] = {
    Sort.SEVERITY: lambda group: -min(severity_rank(one["severity"]) for one in group.entries),
    Sort.LAST: lambda group: group.last_seen,
    Sort.FIRST: lambda group: group.first_seen,
    Sort.COUNT: lambda group: group.occurrences,
}


@dataclass
class TriageModel:
    """`unfolded` are the causes (fingerprints) whose entries are shown below them. `new` are the
    ids of entries that came, or took another failure, since the last `look` (on a first visit:
    lately), and were not looked at yet; `pending` is the latest snapshot that came while paused;
    `changed` are the entries changed from here that no snapshot held yet, by their ids."""

    snapshot: Snapshot
    look: Look = field(default_factory=Look)
    query: Query = field(default_factory=lambda: parse(""))
    order: Sort = Sort.SEVERITY
    unfolded: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    pending: Snapshot | None = None
    changed: dict[str, Entry] = field(default_factory=dict)
    paused: bool = False

    def __post_init__(self) -> None:
        look, now, entries = self.look, self.snapshot.taken_at, self.snapshot.open_entries
        news = (e for e in entries if (look.is_news(e) if look.at else is_new(e, now)))
        self.new = {entry["id"] for entry in news}

    def new_critical(self, snapshot: Snapshot) -> list[str]:
        """The critical failures that no entry held before, be it one that an undo opens again."""
        held = self.pending.entries if self.pending else ()
        ids = {entry["id"] for entry in snapshot.open_entries}
        before = _critical_failures(e for e in (*self.snapshot.entries, *held) if e["id"] in ids)
        now = _critical_failures(snapshot.open_entries)
        return [words for name, words in now.items() if name not in before]

    def update(self, snapshot: Snapshot) -> None:
        """The queue as it is now; while paused it is only counted."""
        if self.paused:
            self.pending = snapshot
            return
        self.pending = None
        if snapshot.trouble is not None and not snapshot.entries and self.snapshot.entries:
            # What was last read stays in sight, under a notice.
            snapshot = replace(snapshot, entries=self.snapshot.entries, health=self.snapshot.health)
        snapshot = self._with_changes(snapshot)
        still_open = {entry["id"] for entry in snapshot.open_entries}
        self.new = (self.new | self._with_news(snapshot)) & still_open
        self.marked &= still_open
        self.snapshot = snapshot

    def _with_changes(self, snapshot: Snapshot) -> Snapshot:
        """It may have been read before what was changed from here. That shown as it was, the cursor
        would go to another entry, on which the next key acts."""
        held = {entry["id"]: entry for entry in snapshot.entries}
        self.changed = {
            own: entry
            for own, entry in self.changed.items()
            if own in held and entry["version"] > held[own]["version"]
        }
        return replace(snapshot, entries=tuple((held | self.changed).values()))

    def apply_changes(self, entries: Sequence[Entry]) -> None:
        """What was changed from here is shown at once, even while the list is held still. What was
        reopened is no news."""
        changed = {entry["id"]: entry for entry in entries}
        self.changed |= changed
        known = {entry["id"]: entry for entry in self.snapshot.entries}
        known |= {own: e for own, e in changed.items() if own in known or is_open(e)}
        self.snapshot = replace(self.snapshot, entries=tuple(known.values()))
        self.marked -= set(changed)

    def toggle_pause(self) -> None:
        self.paused = not self.paused
        if not self.paused and self.pending is not None:
            self.update(self.pending)

    @property
    def pending_count(self) -> int | None:
        """How many came since the pause; None when there is none."""
        return len(self._with_news(self.pending or self.snapshot)) if self.paused else None

    def _with_news(self, snapshot: Snapshot) -> set[str]:
        """The open entries that are not known, or not what they hold now."""
        known = {entry["id"]: last_news(entry) for entry in self.snapshot.entries}
        return {e["id"] for e in snapshot.open_entries if known.get(e["id"]) != last_news(e)}

    def groups(self, now: datetime) -> list[Group]:
        """A row for each cause that matches, in the chosen order and then by what happened last; by
        severity, snoozed ones come last. Below an unfolded one its entries, the worst first."""
        query = self.query
        if self.snapshot.of_all_states:
            query = query._replace(names_state=True)
        groups = grouped(worst_first(query.select(list(self.snapshot.entries), now)))
        groups.sort(key=lambda group: group.last_seen, reverse=True)
        groups.sort(key=_ORDERS[self.order], reverse=True)
        if self.order is Sort.SEVERITY:  # what may wait is not the worst
            groups.sort(key=lambda group: all(is_snoozed(one, now) for one in group.entries))
        rows: list[Group] = []
        for group in groups:
            rows.append(group)
            if group.key in self.unfolded and len(group.entries) > 1:
                rows += single(group.entries)
        return rows

    def alike(self, entry: Entry) -> list[Entry]:
        """Other open entries with the same fingerprint."""
        own = entry["fingerprint"]
        alike = (e for e in self.snapshot.open_entries if own and e["fingerprint"] == own)
        return [other for other in alike if other["id"] != entry["id"]]

    def sort(self, order: Sort) -> None:
        """The times take turns."""
        again = order is self.order is Sort.LAST
        self.order = Sort.FIRST if again else order

    def filter(self, text: str) -> None:
        """Raises QueryError; the terms before the one that is wrong hold in any case."""
        try:
            self.query = parse(text)
        except QueryError:
            with suppress(QueryError):
                self.query = parse(text.rpartition(" ")[0])
            raise


def _critical_failures(entries: Iterable[Entry]) -> dict[str, str]:
    """Critical failures, held by whatever entry: by their fingerprints, what happened where."""
    found: dict[str, str] = {}
    for entry in entries:
        others = filter(_is_critical, entry["merged"])
        held = {row.get("fingerprint") or "": other_words(row) for row in others}
        # An entry takes the worst severity of what it holds.
        if _is_critical(entry) and not held:
            own = f"{entry['phase']} {entry['error_type']}: {entry['error_message']}"
            held = {entry["fingerprint"]: one_line(own)}
        found |= held
    return found


def _is_critical(failure: Entry | MergedFailure) -> bool:
    return failure.get("severity") == "critical"
