"""The tabs: of entries, open and closed ones; of turns as they run, the end of the error log, and
what failed most over a window of time."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from textual.content import Content

from interventions.entry import Entry, closed_at, complete, short_id, turn_context
from interventions.health import Cause
from interventions.plaintext import clean, one_line
from interventions.retry.contract import LiveTurn
from interventions.times import from_text, short_duration, to_text
from interventions.view.groups import Group, marks, single, worst_severity
from interventions.view.ribbon import phases
from monitor.core.feeds import MOST_LINES, MOST_TURNS, Feed
from monitor.core.links import Subject
from monitor.core.model import Sort, TriageModel
from monitor.core.rows import Cell, Column, short_number
from monitor.screens.tab import Item, Tab, severity_cell, severity_style
from monitor.widgets.text_view import Part
from monitor.widgets.trends_view import cause_part, figures
from monitor.widgets.turn_text import live_turn, ribbon_line

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
LogLine = tuple[str, dict[str, Any]]
_STYLES = {"running": "high", "failed": "critical", "answered": "good", "clarify": "good"}
_STYLES |= {"dropped": "critical", "merged": "high", "counted": "medium", "accepted": "good"}


class EntryTab(Tab[Group]):
    def as_entry(self, found: Group) -> Entry:
        return found.first

    def item(self, found: Group) -> Item:
        chosen = sum(one["id"] in self.marked for one in found.entries)
        mark = "" if not chosen else "✓" if chosen == len(found.entries) else "-"
        cells = (Cell(mark, "mark"), *self.cells(found))
        return Item(found.key, cells, found.entries)

    def cells(self, group: Group) -> tuple[Cell, ...]:
        """The cells of a row but for the mark."""
        raise NotImplementedError


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
        return [group.first for group in self.unfiltered()]

    def matching(self) -> Sequence[Group]:
        found = super().matching()
        self._left = len(found) - MOST_HISTORY
        return found[:MOST_HISTORY]

    def cells(self, group: Group) -> tuple[Cell, ...]:
        entry, before = group.first, self.shown.get(group.key)
        closed = from_text(closed_at(entry) or entry["last_seen"])
        age = Cell(short_duration(self.now - closed))
        if before and before.entries[0]["version"] == entry["version"]:
            return (age, *before.cells[2:])  # but for the mark and the age it is as it was
        badges = _badges(group, self.now, ())  # most are resolved, which needs no word
        return (
            age,
            Cell(one_line(short_id(entry["id"])), "dim"),
            severity_cell(entry["severity"]),
            Cell(one_line(entry["phase"])),
            Cell(group.error, badges=tuple(one for one in badges if one[0] != "RESOLVED")),
            Cell(one_line(entry.get("resolution") or ""), "dim"),
        )

    def notes(self) -> list[str]:
        more = f"and {self._left} older: / finds them, or: interventions history QUERY"
        return [more] if self._left > 0 else []


class TurnsTab(Tab[LiveTurn]):
    """A row each, with the ribbon of its phases; running ones first, then what changed last."""

    name = "turns"
    title = "Live turns"
    columns = (
        Column("TURN", 6, right=True),
        Column("LAST", 4, right=True),
        Column("STATUS", 11),
        Column("PHASES", 15),
        Column("DOING", 24, least=8, from_width=72),
        Column("QUESTION", 0),
        Column("SESSION", 14, least=8, from_width=90),
    )
    nothing_yet = ("No turns yet", "each appears here when it begins", "unified-flow ask QUESTION")
    full = (MOST_TURNS, f"the latest {MOST_TURNS}; all: unified-flow turns list")

    def item(self, found: LiveTurn) -> Item:
        status, steps = one_line(str(found["status"])), phases(found.get("ribbon"))
        last = found.get("changed_at") or found.get("started_at")
        running = next((phase.name for phase in steps if phase.status == "running"), "")
        cells = (
            Cell(str(found["turn_id"])),
            Cell(short_duration(self.now - from_text(last)) if last else ""),
            Cell(status, _STYLES.get(status, "dim")),
            Cell(ribbon_line(steps).plain, _STYLES.get(status, "")),
            Cell(one_line(found.get("doing") or running), "dim"),
            Cell(one_line(found.get("question") or "")),
            Cell(one_line(found.get("session_id") or ""), "dim"),
        )
        subject = Subject([found["turn_id"]], found.get("intervention_id"))
        text = partial(live_turn, found, self.now)
        return Item(f"turn-{found['turn_id']}", cells, turn=found, subject=subject, text=text)

    def as_entry(self, found: LiveTurn) -> Entry:
        """What a turn and an entry have in common; words are looked for in all that is shown."""
        steps = phases(found.get("ribbon"))
        stopped = next((one.name for one in steps if one.status in ("failed", "running")), "-")
        words = (found["status"], found.get("question"), found.get("doing"), found.get("error"))
        entry = {
            "id": str(found.get("intervention_id") or f"turn-{found['turn_id']}"),
            "created_at": found.get("started_at") or to_text(self.now),
            "severity": "-",
            "type": "-",
            "phase": stopped,
            "error_type": (found.get("error") or "-").partition(":")[0],
            "error_message": " ".join(filter(None, words)),
            "session_id": found.get("session_id"),
            "turn_id": found["turn_id"],
        }
        return complete(entry)


class LogTab(Tab[LogLine]):
    """Every failure a line, whatever became of it in the queue."""

    name = "log"
    title = "Log"
    columns = (
        Column("TIME", 8),
        Column("ADMISSION", 9),
        Column("ENTRY", 6),
        Column("SEV", 4),
        Column("PHASE", 16, least=10, from_width=64),
        Column("ERROR", 0),
    )
    nothing_yet = ("Nothing failed today", "every failure is a line here", "")
    follow = True
    full = (MOST_LINES, f"the latest {MOST_LINES} lines of today's error log")

    def item(self, found: LogLine) -> Item:
        key, record = found
        if key in self.shown:
            return self.shown[key]
        admission = one_line(str(record.get("admission") or "?"))
        error = f"{record.get('error_type')}: {record.get('error_message')}"[:500]
        why = one_line(str(record.get("reason") or ""))
        cells = (
            Cell(one_line(str(record.get("logged_at") or ""))[11:19]),
            Cell(admission, _STYLES.get(admission, "dim")),
            Cell(one_line(short_id(str(record.get("intervention_id") or "-")))),
            severity_cell(record.get("severity")),
            Cell(one_line(str(record.get("phase")))),
            Cell(one_line(error), badges=((f"[{why}]", "dim"),) if why else ()),
        )
        turn, cause = record.get("turn_id"), str(record.get("fingerprint") or "")
        turns = [turn] if isinstance(turn, int) else []
        subject = Subject(turns, record.get("intervention_id"), cause)
        return Item(key, cells, subject=subject, text=partial(_record_parts, record))

    def as_entry(self, found: LogLine) -> Entry:
        """An entry as it was when the failure was logged."""
        record = found[1]
        return complete({"created_at": record.get("logged_at"), "id": "-", **record})


def _record_parts(record: Mapping[str, Any]) -> list[Part]:
    """A line of the log whole: long texts as they are, the rest as JSON."""
    lines: list[Content] = []
    for name, value in record.items():
        if value in (None, "", [], {}):
            continue
        is_text = isinstance(value, str)
        text = value if is_text else json.dumps(value, indent=2, ensure_ascii=False)
        between = "\n" if "\n" in text else ""
        part = Content.assemble((f"{clean(name)}: ", "dim"), between, clean(text))
        lines += part.split("\n", allow_blank=True)
    return [Part("", lines)]


class TrendsTab(Tab[Cause]):
    """A row for each of the most frequent causes, below a chart."""

    name = "trends"
    title = "Trends"
    columns = (
        Column("TIMES", 5, right=True),
        Column("SEV", 4),
        Column("PHASE", 16, least=8, from_width=50),
        Column("MOST FREQUENT CAUSES", 0),
    )
    nothing_yet = ("Nothing failed", "in this window of time", "W takes another")

    def item(self, found: Cause) -> Item:
        cells = (
            Cell(short_number(found["count"])),
            severity_cell(found["severity"]),
            Cell(one_line(found["phase"])),
            Cell(found["sample"]),
        )
        subject = Subject(fingerprint=found["fingerprint"])
        return Item(found["fingerprint"], cells, subject=subject, text=partial(self._text, found))

    def _text(self, cause: Cause) -> Sequence[Part]:
        trends = self.feed.trends if self.feed else None
        return [cause_part(cause), *(figures(trends) if trends else ())]

    def as_entry(self, found: Cause) -> Entry:
        error_type, _, message = found["sample"].partition(": ")
        failure = {**found, "id": found["fingerprint"], "created_at": to_text(self.now)}
        return complete(failure | {"error_type": error_type, "error_message": message})


TABS: tuple[type[Tab[Any]], ...] = (OpenTab, HistoryTab, TurnsTab, LogTab, TrendsTab)
