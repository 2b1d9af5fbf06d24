"""Open entries of which no retry can pass: their turn is gone, or its journal cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from interventions.entry import Entry, is_open, names, short_id
from interventions.retry.turns import TurnReader


def with_lost_turns(entries: Iterable[Entry], home: Path, reader: TurnReader) -> list[Entry]:
    """Those that are not marked as superseded yet, which says the same."""
    return [
        entry
        for entry in entries
        if is_open(entry)
        and entry["turn_id"]
        and not entry.get("superseded")
        and reader.turn(home, entry["turn_id"]) is None
    ]


def in_words(lost: list[Entry]) -> tuple[str, str]:
    """What is the matter with them, and what to do about it."""
    which = names(entry["id"] for entry in lost)
    what = f"no retry can pass, their turns are gone or cannot be read: {which}"
    ids = " ".join(short_id(entry["id"]) for entry in lost)
    return what, f'ask their questions again; interventions dismiss {ids} --note "its turn is gone"'
