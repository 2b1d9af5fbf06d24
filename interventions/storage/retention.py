"""Which closed entries stay in the file: as many as there is room for, the latest ones."""

from __future__ import annotations

from interventions.entry import Entry, closed_at, is_open


def make_room(entries: tuple[Entry, ...], max_size: int) -> tuple[tuple[Entry, ...], list[Entry]]:
    """(kept, archived): at most `max_size` in all; open ones are always kept."""
    excess = len(entries) - max_size
    if excess <= 0:
        return entries, []
    closed = sorted((entry for entry in entries if not is_open(entry)), key=closed_at)
    leaving = closed[:excess]
    gone = {entry["id"] for entry in leaving}
    return tuple(entry for entry in entries if entry["id"] not in gone), leaving
