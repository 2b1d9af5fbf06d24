"""Entries as they are shown in short: those that are alike as one row, the words of a row, an entry
as JSON, and what entries hold beside their own failure: others, with a fingerprint of their own,
that were merged into them or counted on them because a limit was reached. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from interventions.entry import (
    Entry,
    MergedFailure,
    is_open,
    is_snoozed,
    latest_failure,
    priority,
    severity_rank,
    short_id,
    state_of,
)
from interventions.plaintext import one_line
from interventions.times import from_text, short_duration

NEW_FOR = timedelta(minutes=10)
SEVERITY_WORDS: dict[str, str] = {"critical": "crit", "high": "high", "medium": "med"}


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
        """The error with which the first entry failed last."""
        failure = latest_failure(self.first)
        return one_line(f"{failure.get('error_type')}: {failure.get('error_message')}"[:500])


def grouped(entries: Iterable[Entry]) -> list[Group]:
    """The entries grouped by fingerprint, in the order of each group's first entry."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry["fingerprint"] or entry["id"], []).append(entry)
    return [Group(key, tuple(members)) for key, members in groups.items()]


def single(entries: Iterable[Entry]) -> list[Group]:
    """Each entry as a group of its own."""
    return [Group(entry["id"], (entry,)) for entry in entries]


def marks(group: Group, now: datetime, *, new: bool = False) -> list[str]:
    """What a person must see at once: that any of them came back or has news, that all of them are
    snoozed or superseded, what became of the first, how many are alike, and what else they hold."""
    entries = group.entries
    superseded = sum(bool(entry.get("superseded")) and is_open(entry) for entry in entries)
    state = state_of(group.first, now)
    found = {"REGRESSION": any(entry.get("regression_of") for entry in entries), "NEW": new}
    found["SNOOZED"] = all(is_snoozed(entry, now) for entry in entries)
    found["SUPERSEDED"] = superseded == len(entries)
    words = [word for word, applies in found.items() if applies]
    words += [state.upper()] if state in ("resolved", "dismissed") else []
    if len(entries) > 1:
        some = f", {superseded} superseded" if 0 < superseded < len(entries) else ""
        words.append(f"[+{len(entries) - 1} alike{some}]")
    if others := group.others:
        worst = SEVERITY_WORDS.get(worst_severity(others) or "", "?")
        words.append(f"[+{len(others)} other{'s' if len(others) > 1 else ''}, {worst}]")
    return words


def entry_view(entry: Entry, now: datetime) -> dict[str, Any]:
    """The entry in `--json` and the API: what is derived, then what is stored. Keys are stable."""
    others = other_failures([entry])
    words = {"state": state_of(entry, now), "priority": f"P{priority(entry)}"}
    held = {"others": len(others), "worst_of_others": worst_severity(others)}
    derived = {"id": entry["id"], "short_id": short_id(entry["id"]), **words, **held}
    return {**derived, **entry, **derived}


def other_failures(entries: Iterable[Entry]) -> list[MergedFailure]:
    """Each failure once, the worst and then the latest first; none of the entries' own."""
    known = list(entries)
    own = {entry["fingerprint"] for entry in known}
    found: dict[str, MergedFailure] = {}
    for entry in known:
        for row in entry["merged"]:
            name = row.get("fingerprint") or ""
            if name and name in own:
                continue
            other = found.get(name)
            found[name] = row if other is None else _together(other, row)
    latest_first = sorted(found.values(), key=_last_seen, reverse=True)
    return sorted(latest_first, key=lambda row: severity_rank(row.get("severity")))


def _together(one: MergedFailure, two: MergedFailure) -> MergedFailure:
    later = max(one, two, key=_last_seen)
    worse = min(one, two, key=lambda row: severity_rank(row.get("severity")))
    return {
        **later,
        "severity": worse.get("severity", ""),
        "count": one.get("count", 1) + two.get("count", 1),
        "turns": [*(one.get("turns") or ()), *(two.get("turns") or ())],
    }


def worst_severity(others: list[MergedFailure]) -> str | None:
    return next((row["severity"] for row in others if "severity" in row), None)


def other_line(row: MergedFailure) -> str:
    """`crit 3 x planner HTTPStatusError: 401 Unauthorized`"""
    severity = SEVERITY_WORDS.get(row.get("severity") or "", "")
    again = "REGRESSION" if row.get("regression_of") else ""
    return one_line(f"{severity} {row.get('count', 1)} x {again} {other_words(row)}")


def other_words(row: MergedFailure) -> str:
    """`planner HTTPStatusError: 401 Unauthorized`"""
    message = (row.get("sample") or {}).get("error_message") or ""
    what = f"{row.get('phase', '')} {row.get('error_type', '')}{': ' if message else ''}{message}"
    return one_line(what)


def turns_of_others(entry: Entry) -> set[int]:
    """Turns of the entry that did not fail with its own failure, so that its fix is not theirs."""
    found = set[int]()
    for row in other_failures([entry]):
        found.update(row.get("turns") or ())
        found.add((row.get("sample") or {}).get("turn_id") or 0)
    return found - {0, entry["turn_id"]}


def last_news(entry: Entry) -> str:
    """When something happened in it that nobody can know of: its own failure the first time, or
    another one at any time. ISO text."""
    return max([entry["created_at"], *map(_last_seen, other_failures([entry]))])


def is_new(entry: Entry, now: datetime) -> bool:
    try:
        return now - from_text(last_news(entry)) < NEW_FOR
    except ValueError:  # of a row that was written by hand
        return False


def _last_seen(row: MergedFailure) -> str:
    return str(row.get("last_seen") or "")
