"""Where one thing leads to: an entry to its turns, a turn to its entry, each to its lines of the
log and to what is alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interventions.entry import Entry, is_open, short_id, turns_of
from interventions.retry.entry_points import LiveTurn

_MOST_TURNS = 20


@dataclass(frozen=True)
class Place:
    """A tab under a query. `row` is under the cursor, and `reading`: its detail has the keys.
    `turns` are shown however old they are, and the cause `unfolded` with its entries."""

    tab: str
    query: str
    row: str = ""
    reading: bool = False
    turns: tuple[int, ...] = ()
    unfolded: str = ""


def from_entry(entry: Entry, to: str) -> Place | None:
    turns = turns_of(entry)[:_MOST_TURNS]
    if to == "log" and not turns:
        return Place("log", f"fingerprint:{entry['fingerprint']}", reading=True)
    return _to_cause(entry["fingerprint"]) if to == "alike" else _to_turns(turns, to)


def from_turn(turn: LiveTurn, to: str, entries: Iterable[Entry]) -> Place | None:
    if to == "entry":
        return _to_entry(turn.get("intervention_id"), entries)
    return _to_turns([turn["turn_id"]], to) if to == "log" else None


def from_record(record: Mapping[str, Any], to: str, entries: Iterable[Entry]) -> Place | None:
    """Of a line of the log."""
    turn = record.get("turn_id")
    if to == "entry":
        return _to_entry(record.get("intervention_id"), entries)
    if to == "alike":
        return _to_cause(str(record.get("fingerprint") or ""))
    return _to_turns([turn], to) if isinstance(turn, int) and turn and to == "turns" else None


def _to_turns(turns: list[int], to: str) -> Place | None:
    if not turns or to not in ("turns", "log"):
        return None
    return Place(to, f"turn:{','.join(map(str, turns))}", reading=True, turns=tuple(turns))


def _to_entry(name: object, entries: Iterable[Entry]) -> Place | None:
    if not isinstance(name, str):
        return None
    opened = any(entry["id"] == name and is_open(entry) for entry in entries)
    return Place("open" if opened else "history", f"id:{short_id(name)}", reading=True)


def _to_cause(fingerprint: str) -> Place | None:
    query = f"fingerprint:{fingerprint} is:any"
    return Place("open", query, unfolded=fingerprint) if fingerprint else None
