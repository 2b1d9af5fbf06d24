"""Entries as they are shown in short: those that are alike as one row, the words of a row, and an
entry as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from interventions.entry import (
    Entry,
    MergedFailure,
    is_open,
    is_snoozed,
    latest_failure,
    priority,
    short_id,
    state_of,
)
from interventions.plaintext import one_line
from interventions.times import from_text, short_duration
from interventions.view.others import SEVERITY_WORDS, is_new, other_failures, worst_severity


class Group(NamedTuple):
    """Entries with one fingerprint, or a single one; the first is shown for all."""

    key: str
    entries: tuple[Entry, ...]

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def occurrences(self) -> int:
        return sum(entry["occurrences"] for entry in self.entries)

    @property
    def others(self) -> list[MergedFailure]:
        return other_failures(self.entries)

    def is_new(self, now: datetime) -> bool:
        return any(is_open(entry) and is_new(entry, now) for entry in self.entries)

    @property
    def last_seen(self) -> datetime:
        return max(from_text(entry["last_seen"]) for entry in self.entries)

    @property
    def first_seen(self) -> datetime:
        return min(from_text(entry["first_seen"]) for entry in self.entries)

    def ago(self, now: datetime) -> str:
        return short_duration(now - self.last_seen)

    @property
    def error(self) -> str:
        """What the first failed with last."""
        failure = latest_failure(self.first)
        return one_line(f"{failure.get('error_type')}: {failure.get('error_message')}"[:500])


def grouped(entries: Iterable[Entry]) -> list[Group]:
    """By fingerprint, in the order of each group's first entry."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry["fingerprint"] or entry["id"], []).append(entry)
    return [Group(key, tuple(members)) for key, members in groups.items()]


def single(entries: Iterable[Entry]) -> list[Group]:
    """Each by itself."""
    return [Group(entry["id"], (entry,)) for entry in entries]


def marks(group: Group, now: datetime, *, new: bool = False) -> list[str]:
    """What a person must see at once: that any of them came back or has news, that all of them are
    snoozed or superseded, what became of the first, how many are alike, and what else they hold."""
    entries = group.entries
    superseded = sum(bool(entry.get("superseded")) and is_open(entry) for entry in entries)
    state = state_of(group.first, now)
    found = {
        "REGRESSION": any(entry.get("regression_of") for entry in entries),
        "NEW": new,
        "SNOOZED": all(is_snoozed(entry, now) for entry in entries),
        "SUPERSEDED": superseded == len(entries),
        "RESOLVED": state == "resolved",
        "DISMISSED": state == "dismissed",
    }
    words = [word for word, applies in found.items() if applies]
    if len(entries) > 1:
        some = f", {superseded} superseded" if 0 < superseded < len(entries) else ""
        words.append(f"[+{len(entries) - 1} alike{some}]")
    if others := group.others:
        worst = SEVERITY_WORDS.get(worst_severity(others) or "", "?")
        words.append(f"[+{len(others)} other{'s' if len(others) > 1 else ''}, {worst}]")
    return words


def entry_view(entry: Entry, now: datetime) -> dict[str, Any]:
    """As `--json` and the API give it: as stored, with what is derived first. Keys are stable."""
    others = other_failures([entry])
    derived = {
        "id": entry["id"],
        "short_id": short_id(entry["id"]),
        "state": state_of(entry, now),
        "priority": f"P{priority(entry)}",
        "others": len(others),
        "worst_of_others": worst_severity(others),
    }
    return {**derived, **entry, **derived}
