"""Which turn a person means."""

from __future__ import annotations

from pathlib import Path

from interventions.errors import AmbiguousIdError, ConflictError, NotFoundError
from interventions.settings import queue_at
from unified_flow.errors.turns import NoSuchTurnError
from unified_flow.turns.archive import MAX_DIGITS, TurnArchive


def turn_named(home: Path, name: str) -> tuple[int, str | None]:
    """(turn, the intervention if one was named), by number, request id or intervention id.

    A number is a turn's before it is the beginning of an intervention's id. Raises
    NotFoundError, and ConflictError for an intervention without a turn.
    """
    archive = TurnArchive.of(home)
    number = name.isdecimal() and len(name) <= MAX_DIGITS
    if number and archive.folders.path(int(name)).is_dir():
        return int(name), None
    try:
        entry = queue_at(home).find(name)
    except AmbiguousIdError:
        raise
    except NotFoundError as exc:
        turn = archive.find(name)
        if turn is None:
            raise NoSuchTurnError(
                f"neither a turn nor an intervention is called {name!r}",
                hint="unified-flow turns list, or interventions list",
            ) from exc
        return turn.turn_id, None
    if not entry["turn_id"]:
        raise ConflictError(f"{entry['id']} belongs to no turn, so there is nothing to resume")
    return entry["turn_id"], entry["id"]
