"""What a worker does with a turn that DBOS gives it: the same as one machine, by the journal alone.

DBOS gives a run at least once. Its journal says how far the turn came, and whether anybody else
goes on with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from unified_flow.engine.dead_turns import MESSAGE, may_be_taken_over
from unified_flow.engine.environment import beginning
from unified_flow.engine.failure_report import report_outside_a_phase
from unified_flow.engine.loop import run_turn
from unified_flow.engine.retried_interventions import resolve_retried
from unified_flow.engine.turn_run import TurnRun
from unified_flow.errors import RetrievalError, UnifiedFlowError
from unified_flow.errors.turns import ProcessDied
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.phases.errors import PhaseError
from unified_flow.phases.recipe import Recipe
from unified_flow.resume.lookup import FlowsByOptions
from unified_flow.shared.text_relay import TextSender
from unified_flow.shared.turn_lease import PostgresLease
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.turns.archive import TurnArchive, read_turn
from unified_flow.turns.events import (
    AnyEvent,
    HistoryRead,
    TurnCompleted,
    TurnInterrupted,
    TurnResumed,
    TurnStarted,
    TurnTakenOver,
)
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.store import RunLostError
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

ENDED = "ended"


@dataclass
class Worker:
    """`flow` is that of the home as it is configured; turns that were asked with other settings
    have flows of their own. `running` counts the runs at work."""

    home: Path
    turns: PostgresTurnStore
    flow: UnifiedFlow
    running: int = 0
    _others: FlowsByOptions = field(default_factory=FlowsByOptions)

    @classmethod
    def of(cls, home: Path, turns: PostgresTurnStore) -> Worker:
        """Raises ConfigError."""
        worker = cls(home, turns, UnifiedFlow(wire(home, turns=turns)))
        worker.flow.services.gate.attended = False
        return worker

    async def run(self, turn_id: int, number: int) -> str:
        """The status in which the run of that number leaves the turn. What was done is not done
        again."""
        self.running += 1
        try:
            return await self._until_it_ends(turn_id, number)
        finally:
            self.running -= 1

    async def _until_it_ends(self, turn_id: int, number: int) -> str:
        while True:
            lease = await self.turns.claim(turn_id, number)
            if lease is None:  # perhaps its worker died before it could do this
                turn = await TurnArchive(self.turns).load(turn_id)
                if turn is not None:
                    await self._resolve(turn)
                return ENDED
            turn = None
            with suppress(RunLostError):  # another worker goes on with it: wait until it has ended
                try:
                    turn = await self._run(lease)
                except Exception as exc:  # noqa: BLE001 - what no phase raised: nobody would learn of it
                    return await self._give_up(lease, exc)
                finally:
                    await lease.release()
            if turn is not None:
                await self._resolve(turn)
                return turn.status

    async def _run(self, lease: PostgresLease) -> Turn:
        turn, events = await read_turn(self.turns, lease.turn_id)
        observer = TextSender(self.turns.database, lease.turn_id) if lease.streamed else None
        ledger = Ledger(lease, observer, turn, events)
        if turn.status == "failed":  # killed between the failure of the last phase and the end
            await ledger.record(TurnCompleted(status="answered", saved=False, duration_ms=0.0))
            return ledger.turn
        if not lease.followed:  # they left just before the worker of this run died
            await ledger.record(TurnInterrupted(phase=turn.stopped_in, reason="CancelledError"))
            return ledger.turn
        first = _is_first(events)
        run = await self._prepared(turn, first=first)
        await ledger.begin(TurnTakenOver(dispatched=first, **beginning(run.services)))
        with suppress(PhaseError):
            await run_turn(ledger, run)
        return ledger.turn

    async def _give_up(self, lease: PostgresLease, error: Exception) -> str:
        """A journal that cannot be read, or a defect: a person is asked, as for every failure of
        the flow itself."""
        first = None
        with suppress(RetrievalError):
            first = await self.turns.first(lease.turn_id)
        named = (first.session_id, first.request_id) if first is not None else ("", "")
        services = self.flow.services
        await in_daemon_thread(lambda: report_outside_a_phase(error, *named, services))
        await lease.give_up()
        return ENDED

    async def _prepared(self, turn: Turn, *, first: bool) -> TurnRun:
        """What keeps the turn from going on here is a failure of its next phase."""
        if not first and not may_be_taken_over(turn.interrupted()):
            return self._refused(ProcessDied(MESSAGE, hint=_hint(turn)))
        try:
            services = (await in_daemon_thread(lambda: self._flow_of(turn))).services
        except UnifiedFlowError as exc:
            return self._refused(exc)
        if services.documents is not None and not services.documents.fresh:
            with suppress(UnifiedFlowError):  # the search meets it again, and says so
                await in_daemon_thread(services.documents.ensure_fresh)
        return TurnRun(services)

    def _refused(self, reason: UnifiedFlowError) -> TurnRun:
        """A run that may not be: its first phase fails, for `reason`, as any failure does."""

        def recipe(phase: str) -> Recipe:
            raise reason

        run = TurnRun(self.flow.services)
        run.recipe = recipe
        return run

    def _flow_of(self, turn: Turn) -> UnifiedFlow:
        if turn.asked_with == self.flow.services.asked_with:
            return self.flow
        flow = self._others.of(turn, self.home, turns=self.turns)
        flow.services.gate.attended = False
        return flow

    async def _resolve(self, turn: Turn) -> None:
        """The intervention that the run was to mend: whoever asked for it may have gone."""
        retry, services = turn.retry, self.flow.services
        if retry is not None and retry.note is not None and retry.passed:
            await in_daemon_thread(lambda: resolve_retried(turn, services, outcome=turn.status))

    async def aclose(self) -> None:
        await self._others.aclose()
        await self.flow.aclose()


def _is_first(events: Sequence[AnyEvent]) -> bool:
    """Whether no worker has had this run yet."""
    last = next(event for event in reversed(events) if not isinstance(event, HistoryRead))
    return isinstance(last, TurnStarted | TurnResumed)


def _hint(turn: Turn) -> str:
    begun = ", ".join(dict.fromkeys(write.tool for write in turn.unfinished_writes))
    if begun:
        return f"see whether {begun} has had its effect; who lets the turn go on is asked"
    return "see what it does that ends its workers before it goes on"
