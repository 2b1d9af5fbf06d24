"""Entries as rows of a table that fits the width, failures of one fingerprint together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from interventions.cli.terminal import paint
from interventions.entry import Entry, closed_at, is_open, latest_failure, short_id
from interventions.plaintext import cells, fit, one_line
from interventions.times import from_text, short_duration
from interventions.view.groups import SEVERITY_WORDS, Group, marks


@dataclass(frozen=True)
class _Column:
    title: str
    value: Callable[[Group], str]
    widest: int
    from_width: int = 0


def table(groups: list[Group], width: int, now: datetime) -> list[str]:
    columns = [
        _Column("ID", lambda g: short_id(g.first["id"]), 8),
        _Column("SEV", lambda g: SEVERITY_WORDS.get(g.first["severity"], "?"), 4),
        _Column("AGE", lambda g: _age(g.first, now), 4),
        _Column("N", lambda g: str(g.occurrences), 5),
        _Column("PHASE", lambda g: g.first["phase"], 16),
        _Column("TOOL", lambda g: latest_failure(g.first).get("tool") or "", 16, from_width=90),
        _Column("SESSION", lambda g: g.first["session_id"], 14, from_width=110),
    ]
    shown = [column for column in columns if width >= column.from_width]
    values = [[one_line(column.value(group)) for column in shown] for group in groups]
    sizes = [
        min(max([cells(column.title), *(cells(row[n]) for row in values)]), column.widest)
        for n, column in enumerate(shown)
    ]
    rest = max(width - sum(sizes) - 2 * len(sizes), 12)
    titles = [fit(column.title, size) for column, size in zip(shown, sizes, strict=True)]
    lines = [paint("  ".join([*titles, "ERROR"]), "dim")]
    for group, row in zip(groups, values, strict=True):
        fields = [fit(value, size) for value, size in zip(row, sizes, strict=True)]
        fields[1] = paint(fields[1], group.first["severity"])
        lines.append("  ".join([*fields, fit(_error(group, now), rest).rstrip()]))
        lines += [paint(fit(line, width).rstrip(), "dim") for line in _remarks(group)]
    return lines


def _error(group: Group, now: datetime) -> str:
    entry = group.first
    others = group.entries[1:]
    superseded = sum(bool(each.get("superseded")) and is_open(each) for each in group.entries)
    # Of all of them it is a mark of the row.
    some = 0 < superseded < len(group.entries)
    given_up = f", {superseded} superseded" if some else ""
    more = [f"[+{len(others)} alike{given_up}]"] if others else []
    now_at = latest_failure(entry)
    text = f"{now_at.get('error_type')}: {now_at.get('error_message')}"
    return " ".join([*marks(group, now), *more, one_line(text)])


def _remarks(group: Group) -> list[str]:
    """What a person needs beside the row: the earlier note, the resolution, who has it."""
    entry = group.first
    lines = []
    if regression_of := entry.get("regression_of"):
        note = one_line(entry.get("regression_note") or "no note")
        lines.append(f"  was resolved in {short_id(regression_of)}: {note}")
    what = entry["resolution"] if closed_at(entry) else entry.get("superseded")
    if what:
        lines.append(f"  {one_line(what)}")
    if owner := entry.get("owner"):
        lines.append(f"  assigned to {one_line(owner)}")
    if len(group.entries) > 1:
        others = ", ".join(short_id(other["id"]) for other in group.entries[1:])
        lines.append(f"  also {others}")
    return lines


def _age(entry: Entry, now: datetime) -> str:
    return short_duration(now - from_text(entry["created_at"]))
