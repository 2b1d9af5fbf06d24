"""The turns of an entry that do not fit the queue file, which every put writes whole.

In the file an entry has its latest turns. The error log has a line for each failure that the entry
holds, and so the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from interventions.entry import Entry, MergedFailure

# The turns that an entry of the queue file has at most, and those that stay when it has more.
MOST_IN_FILE, KEPT = 200, 100


def may_have_more(entry: Entry) -> bool:
    """Whether turns of it may be in the log alone."""
    return len(entry["turns"]) >= KEPT


def is_long(entry: Entry) -> bool:
    return len(entry["turns"]) > MOST_IN_FILE


def shortened(entry: Entry) -> Entry:
    """With its latest turns alone."""
    kept = entry["turns"][-KEPT:]
    rows: list[MergedFailure] = [
        {**row, "turns": [turn for turn in row["turns"] if turn in kept]} if "turns" in row else row
        for row in entry["merged"]
    ]
    return {**entry, "turns": kept, "merged": rows}


def with_all_turns(entry: Entry, failures: Iterable[tuple[str, list[int]]]) -> Entry:
    """From the fingerprint and the turns of each failure that it holds, the oldest first."""
    turns: list[int] = []
    by_row: dict[str, list[int]] = defaultdict(list)
    rows = {row.get("fingerprint") or "" for row in entry["merged"]}
    for fingerprint, found in failures:
        others = [turn for turn in found if turn != entry["turn_id"]]
        turns += others
        if fingerprint != entry["fingerprint"]:
            by_row[fingerprint if fingerprint in rows else ""] += others
    merged: list[MergedFailure] = []
    for row in entry["merged"]:
        before = by_row[row.get("fingerprint") or ""]
        merged.append({**row, "turns": _each_once([*before, *(row.get("turns") or ())])})
    return {**entry, "turns": _each_once([*turns, *entry["turns"]]), "merged": merged}


def _each_once(turns: list[int]) -> list[int]:
    """A turn that failed again stands where it failed last."""
    return list(dict.fromkeys(reversed(turns)))[::-1]
