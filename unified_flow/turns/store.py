"""Where turns are kept, in files, in memory or in a database: what every such store can do.

A store may be used from any event loop, and none of its methods blocks one for longer than a
millisecond. A caller without a loop takes `wait_for` (lib/threads.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from unified_flow.errors.turns import NotResumableError

if TYPE_CHECKING:  # a list of turns does without them
    from unified_flow.turns.events import AnyEvent, TurnSalvaged, TurnStarted

T = TypeVar("T")


@dataclass(frozen=True)
class TurnMark:
    """How far a turn's journal has come: while marks are equal nothing was added.

    `size` 0: nothing is in it; None: nothing but the turn's number is taken. `written_at` is a
    Unix time in nanoseconds.
    """

    size: int | None
    written_at: int

    def is_before(self, moment: datetime) -> bool:
        return self.written_at < moment.timestamp() * 1e9


class RunLostError(BaseException):
    """Another process goes on with the turn: the one that ran it stops at once, and says nothing.
    No failure, which is why nothing that catches failures catches it."""


class TurnLease(Protocol):
    """The right to write one turn, which nobody else has meanwhile. It ends with `release`, with
    `remove`, or with the life of its process."""

    turn_id: int

    async def append(self, event: AnyEvent) -> None:
        """Add an event. When a phase has completed or failed, and before a tool writes, it outlives
        the machine once this returns; any other waits for the next of these, or for `flush`.

        Raises OSError, and then nothing of it is ever read. It is not cut short: a cancellation
        comes after it.
        """
        ...

    async def flush(self) -> None:
        """What waits outlives the process once this returns, and others see it. Raises OSError."""
        return

    def drop(self) -> None:
        """Forget what waits."""
        return

    async def show(self, events: Sequence[AnyEvent]) -> None:
        """The turn has stopped: make the page for people, where the store keeps one."""
        return

    async def remove(self, *, reserve: bool = False) -> None:
        """The turn is gone. With `reserve` its number is not given to another. Nothing after a
        `release`. Raises OSError."""
        ...

    async def release(self) -> None:
        """Flush, raising nothing, and end the lease; nothing if it has ended already."""
        ...


@runtime_checkable
class ReportingLease(TurnLease, Protocol):
    """A lease of a store that is in one database with the queue of interventions."""

    async def append_with(
        self, put: Callable[[], T], event_of: Callable[[T], AnyEvent]
    ) -> tuple[T, AnyEvent]:
        """Add an event in one transaction with what `put` puts into the queue: there is both, or
        neither. `put` may run more than once."""
        ...


@dataclass(frozen=True)
class Delivery:
    """A message that is being answered. `begun` is the turn that somebody who died, or was
    cancelled, had begun for it; `begins` gets the number of the one that is begun now."""

    begun: int | None
    begins: Callable[[int], object] = lambda turn_id: None


class TurnStore(Protocol):
    """Methods that take a `turn_id` raise FileNotFoundError for one that is not there, but for
    `mark`, `is_held` and `is_queued`, and RetrievalError for what cannot be read. Those with a body
    are for stores without files, and without leases that outlive their process."""

    def place(self, turn_id: int | None = None) -> str:
        """Where a turn, or all of them, are kept: for a message to people."""
        ...

    def files(self, turn_id: int) -> Path | None:
        """A folder for what the turn's tools are given; None if the store has no files. It need
        not exist yet."""
        return None

    async def create(self, *, kept: bool = True) -> TurnLease:
        """A new turn with a number of its own, among all processes; not `kept` if it is to be
        removed at its end. Raises OSError."""
        ...

    async def open(self, turn_id: int) -> TurnLease:
        """Raises BlockingIOError if somebody runs the turn, and OSError if it cannot be written."""
        ...

    def delivery(self, message: str) -> AbstractAsyncContextManager[Delivery]:
        """One task of one process at a time answers a message; the others wait for it here."""
        ...

    async def read(self, turn_id: int) -> list[AnyEvent]:
        """What happened, oldest first; [] of a turn that was never begun."""
        ...

    async def first(self, turn_id: int) -> TurnStarted | None:
        """How the turn began, at less cost than reading all of it; None if it never did."""
        first = next(iter(await self.read(turn_id)), None)
        return first if first is not None and first.event == "turn_started" else None

    async def ids(self) -> list[int]:
        """The numbers of all turns, oldest first."""
        ...

    async def mark(self, turn_id: int) -> TurnMark | None:
        """None if there is no such turn."""
        ...

    async def marks(self) -> dict[int, TurnMark]:
        """The marks of all turns, oldest first."""
        return {n: mark for n in await self.ids() if (mark := await self.mark(n)) is not None}

    async def sizes(self) -> dict[int, int]:
        """The bytes that each turn takes, large values and pages with it."""
        ...

    async def is_held(self, turn_id: int) -> bool:
        """Whether somebody runs it now. Raises OSError if that cannot be found out."""
        ...

    async def is_queued(self, turn_id: int) -> bool:
        """Whether it waits for a worker, and none has it yet."""
        return False

    async def unreleased(self) -> list[int]:
        """Turns whose lease ended with the life of its process, without reading them all; oldest
        first. Whoever opens and releases such a turn takes it from the list."""
        return []

    async def salvage(self, turn_id: int, by: str) -> tuple[int, TurnSalvaged]:
        """Cut the turn before its first damaged line, for a person, and set the rest aside; how
        many lines are kept, and the event that tells of the others.

        Raises NotResumableError where nothing is damaged, or nothing can be kept, and as `open`
        does.
        """
        await self.read(turn_id)
        raise NotResumableError(f"nothing in {self.place(turn_id)} is damaged")

    async def sweep(self, before: datetime | None) -> None:
        """Remove what processes that died have left half begun (before `before`) or half
        removed."""
        return
