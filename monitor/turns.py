"""What the monitor needs of the program whose turns fail, found through an entry point.

The queue knows no journals and the monitor knows no flow. A program that keeps journals registers,
in the entry point group `interventions.turns`, an object (or a class without arguments) that
satisfies `TurnReader`; it only reads, may be called from any thread, and several times a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypedDict

GROUP = "interventions.turns"


class LiveTurn(TypedDict, total=False):
    """One turn as its journal has it now; only `turn_id` and `status` are needed.

    `status` is running, answered, clarify, failed or interrupted. `ribbon` is that of
    `context.turn`: dicts of `name`, `status` (completed, running, failed, not_run) and
    `duration_ms`. `started_at` is ISO 8601 with a zone. `doing` says what runs right now (a tool, a
    model). `error` is redacted. Texts are shown as plain text.
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


class NoTurnsError(Exception):
    """Nothing installed can read journals; `str` says what to do."""


def find_turn_reader() -> TurnReader:
    """Raises NoTurnsError."""
    for point in entry_points(group=GROUP):
        try:
            found = point.load()
        except Exception as error:  # a foreign module may raise anything when it is imported
            raise NoTurnsError(
                f"{point.name!r} ({point.value}), which reads turns, cannot be loaded: {error}"
            ) from error
        reader: TurnReader = found() if isinstance(found, type) else found
        return reader
    raise NoTurnsError(
        "Nothing that is installed can show its turns. A program registers what can "
        f"under the entry point group {GROUP!r}."
    )
