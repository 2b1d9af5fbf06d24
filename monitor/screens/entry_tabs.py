"""The tabs whose rows are entries: open ones, grouped, and the history of closed ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from textual.content import Content

from interventions.entry import Entry, closed_at, short_id, turns_of
from interventions.plaintext import one_line
from interventions.times import from_text, short_duration
from interventions.view.groups import Group, marks, single
from interventions.view.others import SEVERITY_WORDS, worst_severity
from monitor.core.links import Subject
from monitor.core.model import Sort, TriageModel
from monitor.core.rows import Cell, Column, Row, RowCache, short_number
from monitor.screens.tab import Tab, message, trouble_message

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


class EntryTab(Tab):
    of_entries = True
    marked: set[str]

    def unfiltered(self) -> Sequence[Entry]:
        raise NotImplementedError

    def shown(self, now: datetime) -> Iterable[Entry]:
        raise NotImplementedError

    def marked_entries(self) -> list[Entry]:
        if not self.marked:
            return []
        return [entry for entry in self.unfiltered() if entry["id"] in self.marked]

    def subject(self, key: str) -> Subject:
        entry = next(iter(self.entries(key)), None) or self.model.find(key)
        return Subject(turns_of(entry), None, entry["fingerprint"]) if entry else Subject()

    def count_hidden_marks(self, now: datetime) -> int:
        if not self.marked:
            return 0
        shown = {entry["id"] for entry in self.shown(now)}
        return sum(1 for entry in self.marked_entries() if entry["id"] not in shown)

    def toggle_mark(self, key: str) -> None:
        self._toggle(self.entries(key))

    def toggle_all_marks(self, now: datetime) -> None:
        self._toggle(self.shown(now))

    def _toggle(self, entries: Iterable[Entry]) -> None:
        """What is marked in part becomes marked whole."""
        ids = {entry["id"] for entry in entries}
        self.marked = self.marked - ids if ids <= self.marked else self.marked | ids

    def clear_marks(self) -> bool:
        found, self.marked = bool(self.marked_entries()), set()
        return found


class OpenTab(EntryTab):
    """A row for each group of open interventions that are alike."""

    name = "open"
    title = "Open"

    def __init__(self, model: TriageModel) -> None:
        super().__init__(model)
        self._groups: Sequence[Group] = ()
        self._cache = RowCache()

    @property
    def columns(self) -> tuple[Column, ...]:  # type: ignore[override]
        view = self.model.view
        arrow = {view.sort: "▴" if view.reverse else "▾"}
        severity, last, first, count = (SORT_TITLES[one] + arrow.get(one, "") for one in Sort)
        time = first if view.sort is Sort.FIRST else last
        return (
            Column("", 1),
            Column(severity, 4),
            Column(time, max(len(time), 5), right=True),
            Column(count, 4, least=2, right=True),
            Column("+", 4, least=2, right=True),
            Column("PHASE", 16, least=10),
            Column("SESSION", 24, least=8),
            Column("ERROR", 0),
        )

    @property
    def marked(self) -> set[str]:
        return self.model.marked

    @marked.setter
    def marked(self, ids: set[str]) -> None:
        self.model.marked = ids

    def rows(self, now: datetime) -> list[Row]:
        model = self.model
        made_of = (model.snapshot, model.view, frozenset(model.marked), frozenset(model.new))
        return self._cache.rows(made_of, now, lambda: self._make(now))

    def _make(self, now: datetime) -> tuple[list[Row], list[datetime]]:
        self._groups = self.model.groups(now)
        rows = [open_row(group, self.model, now) for group in self._groups]
        return rows, [_time(group, self.model) for group in self._groups]

    def unfiltered(self) -> Sequence[Entry]:
        return self.model.snapshot.entries

    def shown(self, now: datetime) -> Iterable[Entry]:
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


def _time(group: Group, model: TriageModel) -> datetime:
    return group.first_seen if model.view.sort is Sort.FIRST else group.last_seen


def open_row(group: Group, model: TriageModel, now: datetime) -> Row:
    """A cause or, below one that is unfolded, an entry of it."""
    entries, entry = group.entries, group.first
    chosen = sum(1 for one in entries if one["id"] in model.marked)
    others = group.others
    sessions = {one["session_id"] for one in entries}
    badges = _badges(group, now, model.new)
    if len(entries) > 1:
        arrow = "▾" if group.key in model.view.unfolded else "▸"
        badges = ((f"{arrow}{len(entries)}", "mark"), *badges)
    is_part = bool(entry["fingerprint"]) and group.key == entry["id"]
    cells = (
        Cell("" if not chosen else "✓" if chosen == len(entries) else "-", "mark"),
        _severity(entry),
        Cell(short_duration(now - _time(group, model))),
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
    turn = entry["context"].get("turn")
    question = turn.get("question") if isinstance(turn, dict) else ""
    return one_line(f"turn {entry['turn_id']}: {question or entry['error_message']}"[:500])


def _badges(group: Group, now: datetime, new: Collection[str]) -> tuple[tuple[str, str], ...]:
    is_new = any(entry["id"] in new for entry in group.entries)
    words = marks(group, now, new=is_new)
    found = [BADGES[word][:2] for word in words if word in BADGES]
    if owner := group.first.get("owner"):
        found.append((f"@{one_line(owner)}", "owner"))
    return tuple(found)


def _severity(entry: Entry) -> Cell:
    severity = entry["severity"]
    return Cell(SEVERITY_WORDS.get(severity, "?"), severity_style(severity))


def severity_style(severity: str | None) -> str:
    return severity if severity in SEVERITY_WORDS else "dim"


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

    def __init__(self, model: TriageModel) -> None:
        super().__init__(model)
        self.marked = set()
        self._count = 0
        self._shown: dict[str, Entry] = {}
        self._cache = RowCache()

    def rows(self, now: datetime) -> list[Row]:
        made_of = (self.unfiltered(), self.model.view.query, frozenset(self.marked))
        return self._cache.rows(made_of, now, lambda: self._make(now))

    def _make(self, now: datetime) -> tuple[list[Row], list[datetime]]:
        found = self._matching(now)
        self._count = len(found)
        self._shown = {entry["id"]: entry for entry in found[:MOST_HISTORY]}
        rows, closed = [], []
        for own, entry in self._shown.items():
            closed.append(from_text(closed_at(entry) or entry["last_seen"]))
            ago = short_duration(now - closed[-1])
            rows.append(_history_row(entry, ago, now, marked=own in self.marked))
        return rows, closed

    def _matching(self, now: datetime) -> Sequence[Entry]:
        query, past = self.model.view.query, self.unfiltered()
        return [entry for entry in past if query.matches(entry, now)] if query.tests else past

    def unfiltered(self) -> Sequence[Entry]:
        return self.feed.history if self.feed else ()

    def shown(self, now: datetime) -> Iterable[Entry]:
        return self._matching(now)[:MOST_HISTORY]

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


def _history_row(entry: Entry, ago: str, now: datetime, *, marked: bool) -> Row:
    """`ago`: since when it is closed."""
    (group,) = single([entry])
    cells = (
        Cell("✓" if marked else "", "mark"),
        Cell(ago),
        Cell(one_line(short_id(entry["id"])), "dim"),
        _severity(entry),
        Cell(one_line(entry["phase"])),
        Cell(group.error, badges=_badges(group, now, ())),
        Cell(one_line(entry.get("resolution") or ""), "dim"),
    )
    return Row(entry["id"], cells)
