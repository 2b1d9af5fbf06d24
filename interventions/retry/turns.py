"""What can read the turns of the program that fails, found through an entry point.

The queue knows no journals. A program that keeps some registers, in the entry point group
`interventions.turns`, an object (or a class without arguments) that satisfies `TurnReader`; it only
reads, may be called from any thread, and several times a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypedDict

from interventions.entry import Entry, is_open, short_id, short_ids
from interventions.errors import NoResumerError
from interventions.retry.resumers import registered

GROUP = "interventions.turns"


class LiveTurn(TypedDict, total=False):
    """One turn as its journal has it now; only `turn_id` and `status` are needed.

    `status` is running, answered, clarify, failed or interrupted. `ribbon` is that of
    `context.turn`: dicts of `name`, `status` (completed, running, failed, interrupted,
    not_run) and `duration_ms`. `started_at` is ISO 8601 with a zone. `doing` says what runs right
    now (a tool, a model). `error` is redacted. Texts are shown as plain text.
    """

    turn_id: int
    status: str
    session_id: str
    question: str
    started_at: str
    duration_ms: float | None
    ribbon: list[dict[str, Any]]
    doing: str
    error: str
    intervention_id: str | None


class TurnReader(Protocol):
    """Damaged journals are left out, not raised; a home without turns has none."""

    def latest(self, home: Path, limit: int) -> Sequence[LiveTurn]:
        """The turns that were begun or went on last, running ones first, then the newest."""
        ...

    def turn(self, home: Path, turn_id: int) -> LiveTurn | None: ...

    def as_pytest(self, entry: Entry, home: Path) -> str:
        """A test module that replays the entry's failure. Raises QueueError."""
        ...


def find_turn_reader() -> TurnReader:
    """Raises NoResumerError."""
    reader: TurnReader | None = registered(GROUP, "the reader of turns")
    if reader is not None:
        return reader
    raise NoResumerError(
        "nothing that is installed can read a turn",
        hint=f"a program registers what can under the entry point group {GROUP!r}",
    )


def with_lost_turns(entries: Iterable[Entry], home: Path, reader: TurnReader) -> list[Entry]:
    """Open entries of which no retry can pass: their turn is gone, or its journal cannot be read.

    Entries that are marked as superseded say the same themselves."""
    return [
        entry
        for entry in entries
        if is_open(entry)
        and entry["turn_id"]
        and not entry.get("superseded")
        and reader.turn(home, entry["turn_id"]) is None
    ]


def describe_lost_turns(lost: list[Entry]) -> tuple[str, str]:
    """What is wrong with them, and what to do about it."""
    which = short_ids(entry["id"] for entry in lost)
    what = f"no retry can pass, their turns are gone or cannot be read: {which}"
    ids = " ".join(short_id(entry["id"]) for entry in lost)
    return what, f'ask their questions again; interventions dismiss {ids} --note "its turn is gone"'
