"""The turns of an entry that do not fit the queue file, which every put writes whole.

In the file an entry has its latest turns; the others are in lines of the journal (`turns`), which
are committed with it. A turn that failed again is in both.
"""

from __future__ import annotations

from collections.abc import Iterable

from interventions.entry import Entry, MergedFailure, Transition

# The turns that an entry of the queue file has at most, and those that stay when it has more.
MOST_IN_FILE, KEPT = 200, 100
ACTION = "turns"


def may_have_more(entry: Entry) -> bool:
    """Whether turns of it may be in the journal."""
    return len(entry["turns"]) >= KEPT


def shortened(entry: Entry) -> tuple[Entry, Transition]:
    """The entry with its latest turns, and the others as fields of a line of the journal."""
    turns, kept = entry["turns"], frozenset(entry["turns"][-KEPT:])
    by_failure: dict[str, list[int]] = {}
    rows: list[MergedFailure] = []
    for row in entry["merged"]:
        own = row.get("turns") or []
        if gone := [turn for turn in own if turn not in kept]:
            by_failure[row.get("fingerprint") or ""] = gone
            row = {**row, "turns": [turn for turn in own if turn in kept]}
        rows.append(row)
    short: Entry = {**entry, "turns": turns[-KEPT:], "merged": rows}
    return short, {"turns": turns[:-KEPT], "merged": by_failure}


def with_all_turns(entry: Entry, lines: Iterable[Transition]) -> Entry:
    """From the lines of the journal that are about it, the oldest first."""
    turns: list[int] = []
    by_failure: dict[str, list[int]] = {}
    for line in lines:
        turns += line["turns"]
        for name, own in line["merged"].items():
            by_failure.setdefault(name, []).extend(own)
    rows = list(entry["merged"])
    for number, row in enumerate(rows):
        before = by_failure.get(row.get("fingerprint") or "", [])
        if before:
            rows[number] = {**row, "turns": _each_once([*before, *(row.get("turns") or ())])}
    return {**entry, "turns": _each_once([*turns, *entry["turns"]]), "merged": rows}


def _each_once(turns: list[int]) -> list[int]:
    """A turn that failed again stands where it failed last."""
    return list(dict.fromkeys(reversed(turns)))[::-1]
