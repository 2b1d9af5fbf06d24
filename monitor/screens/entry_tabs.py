"""The tabs whose rows are entries: open ones, grouped, and the history of closed ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from textual.content import Content

from interventions.entry import Entry, closed_at, short_id, turn_context
from interventions.plaintext import one_line
from interventions.times import from_text, short_duration
from interventions.view.groups import Group, marks, single, worst_severity
from monitor.core.model import Sort, TriageModel
from monitor.core.rows import Cell, Column, Row, short_number
from monitor.screens.tab import Tab, message, severity_cell, severity_style, trouble_message

MOST_HISTORY = 500
SORT_TITLES = {Sort.SEVERITY: "SEV", Sort.LAST: "LAST", Sort.FIRST: "FIRST", Sort.COUNT: "N"}
# The words of `marks`, so short that they leave room for the error; the help explains them.
BADGES = {
    "NEW": ("NEW", "new", "came, or took another failure, since you last looked"),
    "REGRESSION": ("REGR", "regression", "came back after it was resolved"),
    "SNOOZED": ("SNZD", "snoozed", "snoozed"),
    "SUPERSEDED": ("SUPS", "snoozed", "its turn was answered by another one"),
    "RESOLVED": ("DONE", "good", "resolved"),
    "DISMISSED": ("DISM", "good", "dismissed"),
}


class OpenTab(Tab):
    """A row for each group of open interventions that are alike."""

    name = "open"
    title = "Open"
    of_entries = True

    def __init__(self, model: TriageModel) -> None:
        super().__init__(model)
        self.marked = model.marked  # the model takes out of it what is closed
        self._groups: Sequence[Group] = ()

    @property
    def columns(self) -> tuple[Column, ...]:  # type: ignore[override]
        view = self.model.view
        arrow = {view.sort: "▴" if view.reverse else "▾"}
        severity, last, first, count = (SORT_TITLES[one] + arrow.get(one, "") for one in Sort)
        time = first if view.sort is Sort.FIRST else last
        return (
            Column("", 1),
            Column(severity, 4, action="sort('severity')"),
            Column(time, max(len(time), 5), right=True, action="sort('last')"),
            Column(count, 4, least=2, right=True, action="sort('count')"),
            Column("+", 4, least=2, right=True),
            Column("PHASE", 16, least=10),
            Column("SESSION", 24, least=8),
            Column("ERROR", 0),
        )

    def rows(self, now: datetime) -> list[Row]:
        self._groups = self.model.groups(now)
        return [open_row(group, self.model, now) for group in self._groups]

    def all_entries(self) -> Sequence[Entry]:
        return self.model.snapshot.entries

    def shown_entries(self, now: datetime) -> Iterable[Entry]:
        return (entry for group in self.model.groups(now) for entry in group.entries)

    def entries(self, key: str) -> Sequence[Entry]:
        return next((group.entries for group in self._groups if group.key == key), ())

    def causes(self, key: str = "") -> set[str]:
        """Fingerprints of several entries: that of the row, or without a key all."""
        shown = [group for group in self._groups if len(group.entries) > 1]
        cause = {one["fingerprint"] for one in self.entries(key)}
        return {group.key for group in shown if not key or group.key in cause}

    def why_empty(self) -> Content:
        snapshot = self.model.snapshot
        trouble = snapshot.trouble
        if trouble is not None:
            return trouble_message(trouble)
        if count := len(snapshot.open_entries):
            query = f"{self.model.view.query.text}  ({count} open)"
            return message("Nothing matches", query, "esc clears the filter")
        closed = len(snapshot.entries)
        past = f"{closed} closed, in the history: press 2" if closed else "nothing waits"
        return message("No open interventions", past, "a new failure appears here by itself")

    def count_label(self) -> str:
        snapshot = self.model.snapshot
        is_known = bool(snapshot.entries) or snapshot.trouble is None
        count = str(len(snapshot.open_entries)) if is_known else "?"
        return f"{count} ({len(self.marked)} marked)" if self.marked else count


def open_row(group: Group, model: TriageModel, now: datetime) -> Row:
    """A cause or, below one that is unfolded, an entry of it."""
    entries, entry = group.entries, group.first
    chosen = sum(1 for one in entries if one["id"] in model.marked)
    others = group.others
    when = group.first_seen if model.view.sort is Sort.FIRST else group.last_seen
    sessions = {one["session_id"] for one in entries}
    badges = _badges(group, now, model.new)
    if len(entries) > 1:
        arrow = "▾" if group.key in model.view.unfolded else "▸"
        badges = ((f"{arrow}{len(entries)}", "mark"), *badges)
    is_part = bool(entry["fingerprint"]) and group.key == entry["id"]
    cells = (
        Cell("" if not chosen else "✓" if chosen == len(entries) else "-", "mark"),
        severity_cell(entry["severity"]),
        Cell(short_duration(now - when)),
        Cell(short_number(group.occurrences)),
        Cell(f"+{len(others)}" if others else "", severity_style(worst_severity(others))),
        Cell("└" if is_part else one_line(entry["phase"]), "dim" if is_part else ""),
        Cell(one_line(entry["session_id"]) + _more(sessions), "dim"),
        Cell(_question(entry) if is_part else _error(group), badges=badges),
    )
    return Row(group.key, cells)


def _more(sessions: Collection[str]) -> str:
    return f" +{len(sessions) - 1}" if len(sessions) > 1 else ""


def _error(group: Group) -> str:
    tool = group.first.get("tool")
    return f"{one_line(tool)} · {group.error}" if tool else group.error


def _question(entry: Entry) -> str:
    """What tells an entry from others of its cause."""
    what = turn_context(entry).get("question") or entry["error_message"]
    return one_line(f"turn {entry['turn_id']}: {what}"[:500])


def _badges(group: Group, now: datetime, new: Collection[str]) -> tuple[tuple[str, str], ...]:
    is_new = any(entry["id"] in new for entry in group.entries)
    words = marks(group, now, new=is_new)
    found = [BADGES[word][:2] for word in words if word in BADGES]
    if owner := group.first.get("owner"):
        found.append((f"@{one_line(owner)}", "owner"))
    return tuple(found)


class HistoryTab(Tab):
    """What was closed, the latest first."""

    name = "history"
    title = "History"
    of_entries = True
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

    def __init__(self, model: TriageModel) -> None:
        super().__init__(model)
        self._count = 0
        self._shown: dict[str, Entry] = {}

    def rows(self, now: datetime) -> list[Row]:
        query, past = self.model.view.query, self.all_entries()
        found = [entry for entry in past if query.matches(entry, now)] if query.tests else past
        self._count = len(found)
        self._shown = {entry["id"]: entry for entry in found[:MOST_HISTORY]}
        return [self._row(entry, now) for entry in self._shown.values()]

    def _row(self, entry: Entry, now: datetime) -> Row:
        (group,) = single([entry])
        closed = from_text(closed_at(entry) or entry["last_seen"])
        cells = (
            Cell("✓" if entry["id"] in self.marked else "", "mark"),
            Cell(short_duration(now - closed)),
            Cell(one_line(short_id(entry["id"])), "dim"),
            severity_cell(entry["severity"]),
            Cell(one_line(entry["phase"])),
            Cell(group.error, badges=_badges(group, now, ())),
            Cell(one_line(entry.get("resolution") or ""), "dim"),
        )
        return Row(entry["id"], cells)

    def all_entries(self) -> Sequence[Entry]:
        return self.feed.history if self.feed else ()

    unfiltered = all_entries

    def shown_entries(self, now: datetime) -> Iterable[Entry]:
        return self._shown.values()

    def entries(self, key: str) -> Sequence[Entry]:
        return [self._shown[key]] if key in self._shown else []

    def truncated_note(self) -> str:
        left = self._count - MOST_HISTORY
        if left <= 0:
            return ""
        return f"and {left} older ones, which a filter finds, or: interventions history QUERY"

    def count_label(self) -> str:
        count = len(self.marked_entries())
        return f"({count} marked)" if count else ""
