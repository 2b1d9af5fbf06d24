"""The running turn, in memory and in its store, moved by one event at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from unified_flow.errors import RetrievalError
from unified_flow.turns import events
from unified_flow.turns.archive import read_turn
from unified_flow.turns.events import AnyEvent, Observed, TurnStarted
from unified_flow.turns.fold import apply
from unified_flow.turns.store import TurnLease, TurnStore
from unified_flow.turns.turn import NOT_BEGUN, Turn

logger = logging.getLogger(__name__)

Observer = Callable[[Observed], None]
STOPS = ("phase_failed", "turn_interrupted", "turn_completed", "turn_abandoned")


class Ledger:
    """`record` writes an event to the journal first; only what the journal takes has happened.

    `create` begins a turn, and `open` takes up one that is kept, which `begin` lets go on. Either
    is the one process that runs the turn, until the ledger is left, or its `lease` released.
    """

    def __init__(
        self,
        lease: TurnLease,
        observer: Observer | None = None,
        turn: Turn | None = None,
        past: Sequence[AnyEvent] = (),
    ) -> None:
        self.turn = turn or NOT_BEGUN
        self.lease = lease
        self._onlooker = observer
        self.observers = [] if observer is None else [observer]
        self.events = list(past)

    @classmethod
    async def create(
        cls,
        store: TurnStore,
        first: Callable[[int], TurnStarted],
        observer: Observer | None = None,
        *,
        kept: bool = True,
    ) -> Self:
        """A turn that begins with what `first` makes of its number. Raises OSError if the store
        cannot take it; there is no such turn then."""
        lease = await store.create(kept=kept)
        ledger = cls(lease, observer)
        try:
            await ledger.begin(first(lease.turn_id))
        except BaseException:
            with suppress(OSError):
                await lease.remove()
            raise
        return ledger

    @classmethod
    async def open(cls, store: TurnStore, turn_id: int, observer: Observer | None = None) -> Self:
        """Raises BlockingIOError if another process runs the turn, FileNotFoundError if there is
        none, RetrievalError if its journal is damaged."""
        lease = await store.open(turn_id)
        try:
            turn, past = await read_turn(store, turn_id)
        except BaseException:
            await lease.release()
            raise
        return cls(lease, observer, turn, past)

    @property
    def watched(self) -> bool:
        """Whether somebody reads what a model writes while it writes."""
        return self._onlooker in self.observers

    async def begin(
        self, event: TurnStarted | events.TurnResumed | events.TurnTakenOver | events.TurnAbandoned
    ) -> None:
        """Record the event with which a run begins. Raises OSError; then it has not happened, and
        observers do not see it."""
        await self.lease.append(event)
        try:
            await self.lease.flush()
        except (OSError, RetrievalError):
            self.lease.drop()
            raise
        await self.took(event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.turn.persist and not self.turn.waits:
            self.lease.drop()
        await self.lease.release()

    async def checkpoint(self) -> None:
        """Flush before anything that takes time or acts. A turn that is not kept is neither resumed
        nor watched unless it fails; then all of it is written."""
        if self.turn.persist:
            await self.lease.flush()

    async def record(self, event: AnyEvent) -> None:
        """Raises OSError if the journal cannot be written; the turn then stands as before."""
        await self.lease.append(event)
        await self.took(event)

    async def record_always(
        self, event: events.PhaseFailed | events.GuardrailChecked | events.HistoryRead
    ) -> None:
        """Record an event even if the journal cannot take it: a failure or a check must not depend
        on the disk. The next phase meets the full disk itself."""
        try:
            await self.lease.append(event)
        except OSError as exc:
            logger.critical("the journal of turn %s cannot be written: %s", self.turn.turn_id, exc)
        await self.took(event)

    async def took(self, event: AnyEvent) -> None:
        """The journal has it, from this process or from the one that runs the turn."""
        self.turn = apply(self.turn, event)
        self.events.append(event)
        if event.event in STOPS and (self.turn.persist or self.turn.status == "failed"):
            try:
                await self.lease.show(self.events)
            except OSError as exc:
                # The page only repeats the journal; it must not cost the turn its answer.
                logger.warning("turn %s has no page: %s", self.turn.turn_id, exc)
        self.show(event)

    def forget(self) -> None:
        """Forget the turn: another one answers, and nothing of this one has happened."""
        self.turn = NOT_BEGUN
        self.events.clear()

    def show(self, event: Observed) -> None:
        """Give it to the observers, recorded or for them alone."""
        for observer in tuple(self.observers):
            try:
                observer(event)
            except Exception as exc:  # noqa: BLE001 - an observer's error is not the turn's
                logger.warning("an observer of turn %s failed: %r", self.turn.turn_id, exc)
                self.observers.remove(observer)
