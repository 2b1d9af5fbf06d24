"""Where one thing leads to: an entry to its turns, a turn to its entry, each to its lines of the
log and to what is alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from interventions.entry import Entry, is_open, short_id

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


@dataclass(frozen=True)
class Subject:
    """What a row is about: its turns, the id of the entry that it is not itself, its cause."""

    turns: Sequence[int] = ()
    entry: object = None
    fingerprint: str = ""

    def lead(self, to: str, entries: Iterable[Entry]) -> Place | None:
        """To `entry`, `alike`, `turns` or `log`; `entries` are those of the queue file."""
        if to == "entry" and isinstance(self.entry, str):
            ids = [one["id"] for one in entries if is_open(one)]
            opened = self.entry in [*ids, *map(short_id, ids)]
            tab = "open" if opened else "history"
            return Place(tab, f"id:{short_id(self.entry)}", reading=True)
        if to == "alike" and self.fingerprint:
            query = f"fingerprint:{self.fingerprint} is:any"
            return Place("open", query, unfolded=self.fingerprint)
        turns = tuple(turn for turn in self.turns if turn)[:_MOST_TURNS]
        if to in ("turns", "log") and turns:
            query = f"turn:{','.join(map(str, turns))}"
            return Place(to, query, reading=True, turns=turns)
        if to == "log" and self.fingerprint:
            return Place(to, f"fingerprint:{self.fingerprint}", reading=True)
        return None
