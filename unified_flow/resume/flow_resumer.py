"""What `interventions retry` and `resolve --retry` find through `interventions.resumers`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Coroutine
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from interventions.retry.contract import Resumer, RetryRequest, RetryResult, Started
from unified_flow.engine.telemetry.logs import logged
from unified_flow.errors import ConfigError, InputError, RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.lib.threads import wait_for
from unified_flow.resume.human_input import ResumeRequest, ask_person
from unified_flow.resume.lookup import FlowsByOptions, load_turn
from unified_flow.resume.resumption import resume_turn
from unified_flow.stores import missing_worker
from unified_flow.turns.events import Observed, TurnResumed
from unified_flow.turns.ledger import Observer

T = TypeVar("T")

logger = logging.getLogger("interventions.retry")
SAME = {each.name for each in fields(ResumeRequest)} & {each.name for each in fields(RetryRequest)}
STOP_S = 5.0  # that a turn has to say that it was interrupted


class FlowResumer(Resumer):
    """Resumes turns of `unified_flow` from any thread, in the process's background loop."""

    def __init__(self) -> None:
        self._flows = FlowsByOptions()

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        """Raises QueueError for a turn that cannot be resumed (busy, nothing left to do, no such
        turn)."""
        turn_id = request.turn_id
        wanted = ResumeRequest(**{name: getattr(request, name) for name in SAME})
        try:
            turn = load_turn(home, turn_id)
            flow = self._flows.of(turn, home, **request.options)
            wanted = ask_person(wanted, turn, flow.services, ask=request.ask, edit=request.edit)
        except (ConfigError, InputError, RetrievalError) as exc:
            # It says nothing about the fix: this turn cannot be begun, and another may.
            why = f"turn {turn_id} cannot be resumed: {exc}"
            raise NotResumableError(why, hint=exc.hint or "") from exc
        observer = _follower(request.started)
        with logged(home):
            if waits := missing_worker(home):
                logger.warning(waits)
            return _run(resume_turn(flow, turn_id, wanted, observer=observer))

    def close(self) -> None:
        wait_for(self._flows.aclose())


def _run(work: Coroutine[Any, Any, T]) -> T:
    """An interrupted caller waits until the turn has said so in its journal."""
    ended = threading.Event()

    async def to_its_end() -> T:
        try:
            return await work
        finally:
            ended.set()

    try:
        return wait_for(to_its_end())
    except KeyboardInterrupt:
        ended.wait(STOP_S)
        raise


def _follower(started: Started | None) -> Observer | None:
    def follow(event: Observed) -> None:
        if started is not None and isinstance(event, TurnResumed):
            started(event.phase, event.changed)

    return follow if started is not None else None
