"""A turn with its flow and the person's answers, ready to go on.

The one way to resume: `resume`, the queue's and the monitor's resumer, the API and the chat prepare
a turn, and then let it go on once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interventions.errors import AmbiguousIdError, ConflictError, NotFoundError
from interventions.home import find_home
from interventions.queue import queue_at
from interventions.retry.contract import Ask, Edit
from unified_flow.engine.telemetry.query_log import LogRequest
from unified_flow.errors import InputError, RetrievalError
from unified_flow.errors.turns import NoSuchTurnError, NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.threads import wait_for
from unified_flow.resume.human_input import ResumeRequest, ask_person
from unified_flow.resume.resumption import ResumeResult, resume_turn
from unified_flow.stores import turn_archive
from unified_flow.turns.archive import LAST, MAX_DIGITS
from unified_flow.turns.ledger import Observer
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

UNREADABLE = "mend its folder or restore it from a copy; unified-flow turns abandon gives it up"


@dataclass(frozen=True)
class PreparedTurn:
    """Nothing has happened yet."""

    turn_id: int
    flow: UnifiedFlow
    request: ResumeRequest


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


def prepare(
    home: Path,
    turn_id: int,
    request: ResumeRequest,
    *,
    pick_flow: Callable[[Turn], UnifiedFlow] | None = None,
    ask: Ask | None = None,
    edit: Edit | None = None,
) -> PreparedTurn:
    """The turn with its flow (`pick_flow`; else `flow_for`) and a person's answers. Call it from a
    thread that may block: it reads files, and `ask` and `edit` wait for the person.

    Raises NoSuchTurnError, NotResumableError, and what `pick_flow`, `ask` and `edit` raise.
    """
    turn = load_turn(home, turn_id)
    flow = flow_for(turn, home) if pick_flow is None else pick_flow(turn)
    request = ask_person(request, turn, flow.services, ask=ask, edit=edit)
    return PreparedTurn(turn_id, flow, request)


async def resume_prepared(
    prepared: PreparedTurn,
    *,
    observer: Observer | None = None,
    log: LogRequest | None = None,
    stays_open: UnifiedFlow | None = None,
) -> ResumeResult:
    """`resume_turn`, then close the flow, unless it is the caller's own, `stays_open`."""
    flow, turn_id = prepared.flow, prepared.turn_id
    async with nullcontext() if flow is stays_open else flow:
        return await resume_turn(flow, turn_id, prepared.request, observer=observer, log=log)


def turn_named(home: Path, name: str) -> tuple[int, str | None]:
    """(turn, the intervention if one was named), by number, request id or intervention id, or
    `last` for the newest turn.

    A number is a turn's before it is the beginning of an intervention's id. Raises
    NotFoundError, and ConflictError for an intervention without a turn.
    """
    archive = turn_archive(home)
    number = name.isdecimal() and len(name) <= MAX_DIGITS
    if number and wait_for(archive.store.mark(int(name))) is not None:
        return int(name), None
    if name == LAST and (newest := wait_for(archive.find(name))) is not None:
        return newest.turn_id, None
    try:
        entry = queue_at(home).find(name)
    except AmbiguousIdError:
        raise
    except NotFoundError as exc:
        turn = wait_for(archive.find(name))
        if turn is None:
            raise NoSuchTurnError(
                f"neither a turn nor an intervention is called {name!r}",
                hint="unified-flow turns list, or interventions list",
            ) from exc
        return turn.turn_id, None
    if not entry["turn_id"]:
        raise ConflictError(f"{entry['id']} belongs to no turn, so there is nothing to resume")
    return entry["turn_id"], entry["id"]
