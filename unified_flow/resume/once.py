"""The one way in which a turn goes on: `resume`, the resumer of the queue and the monitor, the API
and the chat make it ready, and then let it go on once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interventions.home import find_home
from interventions.retry.contract import Ask, Edit
from unified_flow.engine.telemetry.querylog import LogRequest
from unified_flow.errors import InputError, RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.resume.asking import asked
from unified_flow.resume.resumption import Resumed, Resumption, resume_turn
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.ledger import Observer
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

UNREADABLE = "mend its folder or restore it from a copy; unified-flow turns abandon gives it up"


@dataclass(frozen=True)
class Ready:
    """A turn with what it goes on with. Nothing has happened yet."""

    turn_id: int
    flow: UnifiedFlow
    wanted: Resumption


def load(home: Path, turn_id: int) -> Turn:
    """Raises NoSuchTurnError, and NotResumableError for a journal that cannot be read."""
    try:
        return TurnArchive.of(home).require(turn_id)
    except RetrievalError as exc:
        raise NotResumableError(str(exc), hint=exc.hint or UNREADABLE) from exc


def flow_of(turn: Turn, home: Path, **given: Any) -> UnifiedFlow:
    """A flow with today's settings, those that came with the question, and `given` over both."""
    asked = turn.asked_with | {key: value for key, value in given.items() if value is not None}
    docs = asked.pop("docs", None)
    try:
        return UnifiedFlow(wire(find_home(home), docs=docs, **asked))
    except InputError as exc:
        if docs is None or given.get("docs") is not None:
            raise
        where = f"name where they are now: unified-flow resume {turn.turn_id} --docs FOLDER"
        raise InputError(f"{exc}, which turn {turn.turn_id} was asked with", hint=where) from exc


def make_ready(
    home: Path,
    turn_id: int,
    wanted: Resumption,
    *,
    pick: Callable[[Turn], UnifiedFlow] | None = None,
    ask: Ask | None = None,
    edit: Edit | None = None,
) -> Ready:
    """The turn with its flow (`pick`; else `flow_of`) and with what a person answers. For a thread
    that may wait: it reads files, and `ask` and `edit` wait for the person.

    Raises NoSuchTurnError, NotResumableError, and what `pick`, `ask` and `edit` raise.
    """
    turn = load(home, turn_id)
    flow = flow_of(turn, home) if pick is None else pick(turn)
    return Ready(turn_id, flow, asked(wanted, turn, flow.services, ask=ask, edit=edit))


async def resume_once(
    ready: Ready,
    *,
    observer: Observer | None = None,
    log: LogRequest | None = None,
    stays_open: UnifiedFlow | None = None,
) -> Resumed:
    """`resume_turn`, after which the flow is closed, unless it is `stays_open`: its owner's."""
    flow = ready.flow
    async with nullcontext() if flow is stays_open else flow:
        return await resume_turn(flow, ready.turn_id, ready.wanted, observer=observer, log=log)
