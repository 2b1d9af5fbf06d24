"""What entries hold beside their own failure: others, with a fingerprint of their own, that were
merged into them or counted on them because a limit was reached. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from interventions.entry import Entry, MergedFailure, severity_rank
from interventions.plaintext import one_line
from interventions.times import from_text

NEW_FOR = timedelta(minutes=10)
SEVERITY_WORDS: dict[str, str] = {"critical": "crit", "high": "high", "medium": "med"}


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
