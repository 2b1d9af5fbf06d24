"""What is in the queue, and what leaves it for the archive when room is needed. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from interventions.entry import Entry, Transition, closed_at, is_open


@dataclass(frozen=True)
class QueueState:
    """All that is in the queue, in the order in which it was accepted.

    `dropped` counts by reason, `admitted` by kind. `transitions` are those of the last change.
    `extra` is what a newer version wrote beside them. `unusable` are entries that a hand or another
    program has damaged, each with what is wrong. Nothing in it may be changed in place.
    """

    entries: tuple[Entry, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    admitted: dict[str, int] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    transitions: tuple[Transition, ...] = ()
    unusable: tuple[tuple[Any, str], ...] = ()


def make_room(
    entries: tuple[Entry, ...], max_size: int, changed: Collection[str] = ()
) -> tuple[tuple[Entry, ...], list[Entry]]:
    """(entries that stay, entries for the archive): at most `max_size` stay, all open ones, and
    those with an id in `changed`."""
    excess = len(entries) - max_size
    if excess <= 0:
        return entries, []
    may_leave = (e for e in entries if not is_open(e) and e["id"] not in changed)
    closed = sorted(may_leave, key=closed_at)
    leaving = closed[:excess]
    gone = {entry["id"] for entry in leaving}
    return tuple(entry for entry in entries if entry["id"] not in gone), leaving
