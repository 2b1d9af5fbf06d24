"""The turn that somebody names, and the flow with which it goes on or is replayed."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from interventions.errors import AmbiguousIdError, ConflictError, NotFoundError
from interventions.home import find_home
from interventions.queue import queue_at
from unified_flow.errors import InputError, RetrievalError
from unified_flow.errors.turns import NoSuchTurnError, NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.threads import wait_for
from unified_flow.stores import turn_archive
from unified_flow.turns.archive import LAST, MAX_DIGITS
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

UNREADABLE = "mend its folder or restore it from a copy; unified-flow turns abandon gives it up"


def load_turn(home: Path, turn_id: int) -> Turn:
    """Raises NoSuchTurnError, and NotResumableError for a journal that cannot be read."""
    try:
        return wait_for(turn_archive(home).require(turn_id))
    except RetrievalError as exc:
        raise NotResumableError(str(exc), hint=exc.hint or UNREADABLE) from exc


def flow_for(turn: Turn, home: Path, **given: Any) -> UnifiedFlow:
    """A flow with today's settings, those that came with the question, and `given` over both."""
    options = turn.asked_with | {key: value for key, value in given.items() if value is not None}
    docs = options.pop("docs", None)
    try:
        return UnifiedFlow(wire(find_home(home), docs=docs, **options))
    except InputError as exc:
        if docs is None or given.get("docs") is not None:
            raise
        where = f"name where they are now: unified-flow resume {turn.turn_id} --docs FOLDER"
        raise InputError(f"{exc}, which turn {turn.turn_id} was asked with", hint=where) from exc


class FlowsByOptions:
    """Turns that were asked with the same options share a flow: to wire one costs more than most
    turns. For any thread."""

    def __init__(self) -> None:
        self._flows: dict[tuple[Path, str], UnifiedFlow] = {}
        self._wiring = threading.Lock()

    def of(self, turn: Turn, home: Path, **given: Any) -> UnifiedFlow:
        """The flow of `flow_for`, wired once for all turns that were asked alike."""
        asked = json.dumps([turn.asked_with, given], sort_keys=True, default=str)
        with self._wiring:
            if (home, asked) not in self._flows:
                self._flows[home, asked] = flow_for(turn, home, **given)
            return self._flows[home, asked]

    async def aclose(self) -> None:
        for flow in self._flows.values():
            await flow.aclose()
        self._flows.clear()


def turn_named(home: Path, name: str) -> tuple[int, str | None]:
    """(turn, the intervention if one was named), by number, request id or intervention id, or
    `last` for the newest turn.

    A number is a turn's before it is the beginning of an intervention's id. Raises
    NotFoundError, and ConflictError for an intervention without a turn.
    """
    archive = turn_archive(home)
    number = name.isdecimal() and len(name) <= MAX_DIGITS
    if name == LAST or (number and wait_for(archive.store.mark(int(name))) is not None):
        return wait_for(archive.number(name)), None
    try:
        entry = queue_at(home).find(name)
    except AmbiguousIdError:
        raise
    except NotFoundError as exc:
        with suppress(NoSuchTurnError):
            if not number:
                return wait_for(archive.number(name)), None
        raise NoSuchTurnError(
            f"neither a turn nor an intervention is called {name!r}",
            hint="unified-flow turns list, or interventions list",
        ) from exc
    if not entry["turn_id"]:
        raise ConflictError(f"{entry['id']} belongs to no turn, so there is nothing to resume")
    return entry["turn_id"], entry["id"]
