"""The tabs whose rows are entries: open ones, grouped, and the history of closed ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from interventions.entry import Entry, closed_at, short_id, turn_context, turns_of
from interventions.plaintext import one_line
from interventions.times import from_text, short_duration
from interventions.view.groups import Group, marks, single, worst_severity
from monitor.core.feeds import Feed
from monitor.core.links import Subject
from monitor.core.model import Sort, TriageModel
from monitor.core.rows import Cell, Column, short_number
from monitor.screens.tab import Item, Tab, severity_cell, severity_style

MOST_HISTORY = 500
SORT_TITLES = {Sort.SEVERITY: "SEV", Sort.LAST: "LAST", Sort.FIRST: "FIRST", Sort.COUNT: "N"}
# The words of `marks`, so short that they leave room for the error; the help explains them.
BADGES = {
    "NEW": ("NEW", "new", "came, or took another failure, since you last looked"),
    "REGRESSION": ("REGR", "regression", "came back after it was resolved"),
    "SNOOZED": ("SNZD", "snoozed", "snoozed"),
    "SUPERSEDED": ("SUPS", "snoozed", "its turn was answered by another one"),
    "RESOLVED": ("RESOLVED", "good", "resolved"),
    "DISMISSED": ("DISMISSED", "good", "dismissed"),
}


class EntryTab(Tab[Group]):
    def as_entry(self, found: Group) -> Entry:
        return found.first

    def item(self, found: Group) -> Item:
        chosen = sum(one["id"] in self.marked for one in found.entries)
        mark = "" if not chosen else "✓" if chosen == len(found.entries) else "-"
        cells = (Cell(mark, "mark"), *self.cells(found))
        return Item(found.key, cells, found.entries)

    def cells(self, group: Group) -> tuple[Cell, ...]:
        """All but the mark."""
        raise NotImplementedError


def about_entry(entry: Entry) -> Subject:
    return Subject(turns_of(entry), None, entry["fingerprint"])


class OpenTab(EntryTab):
    """A row for each cause of open interventions and, below one that is unfolded, its entries."""

    name = "open"
    title = "Open"

    def __init__(self, model: TriageModel) -> None:
        super().__init__(model)
        self.marked = model.marked  # the model takes out of it what is closed
        self.feed = Feed(self.name)  # its entries are the model's

    @property
    def columns(self) -> tuple[Column, ...]:  # type: ignore[override]
        order = self.model.order
        titles = (title + "▾" * (one is order) for one, title in SORT_TITLES.items())
        severity, last, first, count = titles
        time = first if order is Sort.FIRST else last
        return (
            Column("", 1),
            Column(severity, 4, action="sort('severity')"),
            Column(time, max(len(time), 5), right=True, action="sort('last')"),
            Column(count, 4, least=2, right=True, action="sort('count')"),
            Column("+", 4, least=2, right=True),
            Column("PHASE", 16, least=10),
            Column("SESSION", 24, least=12),
            Column("ERROR", 0),
        )

    def matching(self) -> Sequence[Group]:
        return self.model.groups(self.now)

    def all_entries(self) -> Sequence[Entry]:
        return self.model.snapshot.entries

    def cells(self, group: Group) -> tuple[Cell, ...]:
        entries, entry, others = group.entries, group.first, group.others
        when = group.first_seen if self.model.order is Sort.FIRST else group.last_seen
        sessions = {one["session_id"] for one in entries}
        more = f" +{len(sessions) - 1}" if len(sessions) > 1 else ""
        badges = _badges(group, self.now, self.model.new)
        if len(entries) > 1:
            arrow = "▾" if group.key in self.model.unfolded else "▸"
            badges = ((f"{arrow}{len(entries)}", "mark"), *badges)
        is_part = bool(entry["fingerprint"]) and group.key == entry["id"]
        tool = entry.get("tool")
        error = f"{one_line(tool)} · {group.error}" if tool else group.error
        return (
            severity_cell(entry["severity"]),
            Cell(short_duration(self.now - when)),
            Cell(short_number(group.occurrences)),
            Cell(f"+{len(others)}" if others else "", severity_style(worst_severity(others))),
            Cell("└", "dim") if is_part else Cell(one_line(entry["phase"])),
            Cell(one_line(entry["session_id"]) + more, "dim"),
            Cell(_question(entry) if is_part else error, badges=badges),
        )

    def unfiltered(self) -> Sequence[Group]:
        return single(self.model.snapshot.open_entries)

    @property
    def nothing_yet(self) -> tuple[str, str, str]:  # type: ignore[override]
        closed = len(self.model.snapshot.entries)
        past = f"{closed} closed, in the history: press 2" if closed else "nothing waits"
        return ("No open interventions", past, "a new failure appears here by itself")

    def notes(self) -> list[str]:
        snapshot, lines = self.model.snapshot, []
        if snapshot.read_only and not snapshot.of_all_states:
            lines.append(f"read-only: {snapshot.read_only}; nothing can be changed from here")
        if snapshot.locked:
            lines.append(
                f"locked: by {snapshot.locked} for a while now; a change waits for it, then is "
                "refused. If it hangs, end it: the lock goes with it"
            )
        return lines

    def count_label(self) -> str:
        snapshot = self.model.snapshot
        is_known = bool(snapshot.entries) or snapshot.trouble is None
        count = str(len(snapshot.open_entries)) if is_known else "?"
        return f"{count} ({len(self.marked)} marked)" if self.marked else count


def _question(entry: Entry) -> str:
    """What tells an entry from others of its cause."""
    what = turn_context(entry).get("question") or entry["error_message"]
    turn = f"turn {entry['turn_id']}: " if entry["turn_id"] else ""
    return one_line(f"{turn}{what}"[:500])


def _badges(group: Group, now: datetime, new: Collection[str]) -> tuple[tuple[str, str], ...]:
    is_new = any(entry["id"] in new for entry in group.entries)
    words = marks(group, now, new=is_new)
    found = [BADGES[word][:2] for word in words if word in BADGES]
    if owner := group.first.get("owner"):
        found.append((f"@{one_line(owner)}", "owner"))
    return tuple(found)


class HistoryTab(EntryTab):
    """What was closed, the latest first."""

    name = "history"
    title = "History"
    columns = (
        Column("", 1),
        Column("CLOSED", 6, right=True),
        Column("ENTRY", 6, from_width=58),
        Column("SEV", 4),
        Column("PHASE", 16, least=8, from_width=70),
        Column("ERROR", 0),
        Column("NOTE", 40, least=16),
    )
    nothing_yet = ("No history", "nothing was closed yet", "")
    _left = 0  # older ones, which are no rows

    def all_entries(self) -> Sequence[Entry]:
        return self.feed.found if self.feed else ()

    def unfiltered(self) -> Sequence[Group]:
        return single(self.all_entries())

    def matching(self) -> Sequence[Group]:
        found = super().matching()
        self._left = len(found) - MOST_HISTORY
        return found[:MOST_HISTORY]

    def cells(self, group: Group) -> tuple[Cell, ...]:
        entry = group.first
        closed = from_text(closed_at(entry) or entry["last_seen"])
        return (
            Cell(short_duration(self.now - closed)),
            Cell(one_line(short_id(entry["id"])), "dim"),
            severity_cell(entry["severity"]),
            Cell(one_line(entry["phase"])),
            Cell(group.error, badges=_badges(group, self.now, ())),
            Cell(one_line(entry.get("resolution") or ""), "dim"),
        )

    def notes(self) -> list[str]:
        more = f"and {self._left} older ones, which a filter finds, or: interventions history QUERY"
        return [more] if self._left > 0 else []

    def count_label(self) -> str:
        count = len(self.marked_entries())
        return f"({count} marked)" if count else ""
