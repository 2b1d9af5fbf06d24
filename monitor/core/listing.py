"""Entries as rows: filter, group, sort, and the words of each cell. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from interventions.durations import short_duration
from interventions.entry import (
    Entry,
    severity_rank,
    short_id,
    state_of,
    worst_first,
)
from interventions.putting.occurrences import stands_at
from interventions.timestamps import from_text
from interventions.view.grouping import SEVERITY_WORDS, Group, grouped, marks, single
from interventions.view.plaintext import one_line
from interventions.view.query import Query
from monitor.core.rows import Cell, Column, Row

OPEN_COLUMNS = (
    Column("", 1),
    Column("SEV", 4),
    Column("AGE", 4, right=True),
    Column("N", 4, right=True),
    Column("PHASE", 16, least=10),
    Column("TOOL", 14, least=8, from_width=58),
    Column("ERROR", 0),
    Column("SESSION", 14, least=8, from_width=72),
)
HISTORY_COLUMNS = (
    Column("", 1),
    Column("CLOSED", 6, right=True),
    Column("ENTRY", 6, from_width=58),
    Column("SEV", 4),
    Column("PHASE", 16, least=8, from_width=70),
    Column("ERROR", 0),
    Column("NOTE", 40, least=16),
)


class Sort(StrEnum):
    SEVERITY = "severity"
    AGE = "age"
    COUNT = "count"


_MARK_STYLE = {"REGRESSION": "regression", "RESOLVED": "good", "DISMISSED": "good"}
SORT_COLUMN = {Sort.SEVERITY: "SEV", Sort.AGE: "AGE", Sort.COUNT: "N"}


@dataclass(frozen=True)
class View:
    """How the list is shown; `reverse` turns the order that a sort begins with."""

    query: Query
    sort: Sort = Sort.SEVERITY
    reverse: bool = False
    folded: bool = True

    def sorted_by(self, sort: Sort) -> View:
        turned = sort is self.sort and not self.reverse
        return View(self.query, sort, turned, self.folded)


def select(entries: Iterable[Entry], view: View, now: datetime) -> list[Group]:
    """What matches, worst first within each group, groups in the order of the view."""
    found = worst_first(view.query.select(list(entries), now))
    groups = grouped(found) if view.folded else single(found)
    if view.sort is Sort.AGE:
        groups.sort(key=lambda group: from_text(group.first["created_at"]))
    elif view.sort is Sort.COUNT:
        groups.sort(key=lambda group: group.occurrences, reverse=True)
    return groups[::-1] if view.reverse else groups


def open_row(
    group: Group, now: datetime, *, new: Collection[str] = (), marked: Collection[str] = ()
) -> Row:
    entry = group.first
    chosen = sum(1 for one in group.entries if one["id"] in marked)
    mark = "" if not chosen else "✓" if chosen == len(group.entries) else "-"
    cells = (
        Cell(mark, "mark"),
        Cell(SEVERITY_WORDS.get(entry["severity"], "?"), _severity_style(entry)),
        Cell(_ago(entry["created_at"], now)),
        Cell(short_number(group.occurrences)),
        Cell(one_line(entry["phase"])),
        Cell(one_line(entry.get("tool") or ""), "dim"),
        Cell(_error(entry), badges=_badges(group, now, new)),
        Cell(one_line(entry["session_id"]), "dim"),
    )
    return Row(group.key, cells)


def history_row(entry: Entry, ago: str, now: datetime, *, marked: bool = False) -> Row:
    """`ago`: since when it is closed."""
    resolved = bool(entry.get("resolved_at"))
    state = state_of(entry, now).upper()
    cells = (
        Cell("✓" if marked else "", "mark"),
        Cell(ago),
        Cell(one_line(short_id(entry["id"])), "dim"),
        Cell(SEVERITY_WORDS.get(entry["severity"], "?"), _severity_style(entry)),
        Cell(one_line(entry["phase"])),
        Cell(_error(entry), badges=((state, "good" if resolved else "dim"),)),
        Cell(one_line(entry.get("resolution") or ""), "dim"),
    )
    return Row(entry["id"], cells)


def short_number(number: int) -> str:
    """Four characters at most, up to a thousand million: 9999, 12k, 3M."""
    if number >= 10**6:
        return f"{number // 10**6}M"
    return f"{number // 1000}k" if number >= 10**4 else str(number)


def _badges(group: Group, now: datetime, new: Collection[str]) -> tuple[tuple[str, str], ...]:
    found = [(mark, _MARK_STYLE.get(mark, "snoozed")) for mark in marks(group, now)]
    if any(entry["id"] in new for entry in group.entries):
        found.insert(1 if found and found[0][0] == "REGRESSION" else 0, ("NEW", "new"))
    if len(group.entries) > 1:
        found.append((f"[{len(group.entries)} alike]", "dim"))
    if owner := group.first.get("owner"):
        found.append((f"@{one_line(owner)}", "owner"))
    return tuple(found)


def _error(entry: Entry) -> str:
    now = stands_at(entry)
    return one_line(f"{now.get('error_type')}: {now.get('error_message')}"[:500])


def _ago(moment: str, now: datetime) -> str:
    return short_duration(now - from_text(moment))


def _severity_style(entry: Entry) -> str:
    return entry["severity"] if severity_rank(entry["severity"]) < len(SEVERITY_WORDS) else "dim"
