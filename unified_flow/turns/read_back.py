"""A turn as its journal has it: the one reading of a folder, for whoever looks or goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unified_flow.errors import RetrievalError
from unified_flow.turns.events import AnyEvent, TurnStarted
from unified_flow.turns.folding import JournalOrderError, fold
from unified_flow.turns.journal import read
from unified_flow.turns.turn import Turn


def read_turn(folder: Path) -> tuple[Turn, list[AnyEvent]]:
    """The turn, and what happened in it; turn 0 for a journal without a whole line.

    Raises FileNotFoundError without a journal, and RetrievalError for one that is damaged. No lock
    is taken.
    """
    events = list(read(folder))
    if events and not isinstance(events[0], TurnStarted):
        raise damaged(folder, "its first line is missing")
    with naming(folder):
        return fold(events), events


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Lines that are whole, and that no turn can have written in this order, are damage, and the
    folder is named."""
    try:
        yield
    except JournalOrderError as exc:
        raise damaged(folder, str(exc)) from exc


def damaged(folder: Path, reason: str) -> RetrievalError:
    return RetrievalError(
        f"the turn in {folder} cannot be read: {reason}",
        hint="its journal is damaged; ask the question again",
    )
