"""The queue as the logs tell it, for when its file was damaged. Pure.

The error log has every failure and what became of it, the journal every transition, the archive
what left the queue, and a damaged file often still has most of its entries whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interventions.drain import failure_of
from interventions.entry import Entry
from interventions.occurrences import count_onto
from interventions.store import Transition


def rebuild(
    *,
    log: Iterable[dict[str, Any]],
    journal: list[Transition],
    archived: Iterable[Entry],
    salvaged: Iterable[Entry],
    current: Iterable[Entry],
) -> tuple[Entry, ...]:
    """What should be in the queue: all that was lost, oldest first, and `current` as it is."""
    found = _from_log(log, journal)
    for line in _happened(journal):
        entry = found.get(line["id"])
        if entry is not None and line["version_to"] > entry["version"]:
            found[line["id"]] = {**entry, **line["after"], "version": line["version_to"]}
    for entry in salvaged:
        known = found.get(entry["id"])
        if known is None or entry["version"] >= known["version"]:
            found[entry["id"]] = entry
    for entry in archived:
        known = found.get(entry["id"])
        if known is not None and entry["version"] >= known["version"]:
            del found[entry["id"]]
    present = {entry["id"]: entry for entry in current}
    lost = [entry for name, entry in found.items() if name not in present]
    return (*sorted(lost, key=lambda entry: str(entry["created_at"])), *present.values())


def _from_log(log: Iterable[dict[str, Any]], journal: list[Transition]) -> dict[str, Entry]:
    drained = {line["failure_id"]: line["id"] for line in journal if line.get("action") == "drain"}
    found: dict[str, Entry] = {}
    for line in log:
        try:
            failure = failure_of(line)
        except ValueError:
            continue
        holder = line.get("intervention_id") or drained.get(failure["id"])
        if holder == failure["id"]:
            found.setdefault(holder, failure)
        elif holder in found:
            found[holder] = count_onto(found[holder], failure)
    return found


def _happened(journal: list[Transition]) -> list[Transition]:
    """Without the lines whose writer was killed before the queue was written.

    The next transition of that entry then began at the same version once more.
    """
    kept: list[Transition] = []
    next_from: dict[str, int] = {}
    for line in reversed(journal):
        if "after" not in line or "version_from" not in line:
            continue
        if line["version_from"] < next_from.get(line["id"], line["version_to"]):
            kept.append(line)
            next_from[line["id"]] = line["version_from"]
    return kept[::-1]
