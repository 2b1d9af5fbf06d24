"""The queue as the logs tell it, for when its file was damaged. Pure.

The error log has every failure and what became of it, the journal every transition, the archive
what left the queue, and a damaged file often still has most of its entries whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from interventions.closing.transitions import happened
from interventions.entry import Entry, Transition
from interventions.putting.occurrences import count_onto
from interventions.upkeep.drain import failure_of


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
    for line in happened(journal):
        changed = found.get(line["id"] or "")
        if changed is not None and "after" in line and line["version_to"] > changed["version"]:
            found[changed["id"]] = {**changed, **line["after"], "version": line["version_to"]}
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
    more: list[tuple[str, Entry]] = []
    for line in log:
        try:
            failure = failure_of(line)
        except ValueError:
            continue
        holder = line.get("intervention_id") or drained.get(failure["id"])
        if holder == failure["id"]:
            found.setdefault(holder, failure)
        elif holder:
            more.append((holder, failure))
    for holder, failure in more:
        if holder in found:
            found[holder] = count_onto(found[holder], failure)
    return found


def whole_log(
    error_lines: Iterable[dict[str, Any]], emergency_lines: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Each failure once: the emergency log has those, too, that the error log could not take."""
    lines = list(error_lines)
    known = {line.get("id") for line in lines}
    return [*lines, *(line for line in emergency_lines if line.get("id") not in known)]


def recount(
    log: Iterable[dict[str, Any]], journal: Iterable[Transition]
) -> tuple[dict[str, int], dict[str, int]]:
    """(admitted by kind, dropped by reason); what a drain did not put apart counts as merged."""
    admitted: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for line in log:
        if line.get("admission") == "dropped":
            dropped[str(line.get("reason") or "unknown")] += 1
        elif line.get("admission"):
            admitted[str(line["admission"])] += 1
    for each in journal:
        if each.get("action") == "drain":
            admitted["accepted" if each.get("failure_id") == each["id"] else "merged"] += 1
    return dict(admitted), dict(dropped)
