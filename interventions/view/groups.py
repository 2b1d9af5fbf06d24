"""Failures that are alike as one row, and the short words of a row. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from interventions.entry import Entry, is_open, is_snoozed, state_of

SEVERITY_WORDS: dict[str, str] = {"critical": "crit", "high": "high", "medium": "med"}


@dataclass(frozen=True)
class Group:
    """Entries with one fingerprint, or a single one; the first is shown for all."""

    key: str
    entries: tuple[Entry, ...]

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def occurrences(self) -> int:
        return sum(entry["occurrences"] for entry in self.entries)


def grouped(entries: Iterable[Entry]) -> list[Group]:
    """By fingerprint, in the order of each group's first entry."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry["fingerprint"] or entry["id"], []).append(entry)
    return [Group(key, tuple(members)) for key, members in groups.items()]


def single(entries: Iterable[Entry]) -> list[Group]:
    """Each by itself."""
    return [Group(entry["id"], (entry,)) for entry in entries]


def marks(group: Group, now: datetime) -> list[str]:
    """What a person must see at once: that any of them came back, that all of them are snoozed or
    superseded, and what became of the first."""
    found = []
    if any(entry.get("regression_of") for entry in group.entries):
        found.append("REGRESSION")
    if all(is_snoozed(entry, now) for entry in group.entries):
        found.append("SNOOZED")
    if all(entry.get("superseded") and is_open(entry) for entry in group.entries):
        found.append("SUPERSEDED")
    state = state_of(group.first, now)
    if state in ("resolved", "dismissed"):
        found.append(state.upper())
    return found
