"""The turns that run in this server: bounded in number, cancelled when their client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from starlette.types import Receive

from unified_flow.api import problems
from unified_flow.api.problems import CLIENT_CLOSED, ProblemError
from unified_flow.lib.threads import ended
from unified_flow.turns.events import Observed
from unified_flow.turns.ledger import Observer

T = TypeVar("T")
TIMEOUTS = ("ReadTimeout", "ConnectTimeout", "PoolTimeout", "WriteTimeout")
MOST_TIMEOUTS = 3  # in a row
SHUNNED_S = 30.0


@dataclass(eq=False)
class Progress:
    """Whether the turns that run get on: when each has last done something, and how many in a row
    have ended because a server did not answer in time."""

    stuck_after_s: float
    _last: dict[object, float] = field(default_factory=dict)
    _timeouts: int = 0
    _timed_out_at: float = 0.0

    @contextmanager
    def of_turn(self, *others: Observer | None) -> Iterator[Observer]:
        """An observer for a turn that runs meanwhile, which tells the others, too. A cancellation
        that comes from within the turn is a failure like any other: RuntimeError."""
        turn, told = object(), [each for each in others if each is not None]
        self._last[turn] = monotonic()

        def observe(event: Observed) -> None:
            self._last[turn] = monotonic()
            if event.event == "model_called":
                self._timeouts = 0
            elif event.event == "model_failed" and event.error_type in TIMEOUTS:
                self._timeouts += 1
                self._timed_out_at = monotonic()
            for other in told:
                other(event)

        try:
            yield observe
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise RuntimeError("something that the turn waited for was cancelled") from exc
        finally:
            del self._last[turn]

    def hangs(self) -> bool:
        """Most of the turns that run are stuck, or the last calls of models have all timed out, a
        short while ago: later a question is let through to try."""
        now = monotonic()
        stuck = sum(now - last > self.stuck_after_s for last in self._last.values())
        timed_out = self._timeouts >= MOST_TIMEOUTS and now - self._timed_out_at < SHUNNED_S
        return timed_out or stuck > len(self._last) / 2


@dataclass
class RunningTurns:
    """`limit` turns at once. Once it is `stopping`, none begins; the flow journals those that are
    cancelled as interrupted."""

    limit: int
    stopping: bool = False
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, turn: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Raises ProblemError where there is no room."""
        if self.stopping or len(self._tasks) >= self.limit:
            turn.close()
            raise ProblemError(problems.unavailable("stopping" if self.stopping else "saturated"))
        task = asyncio.create_task(turn)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def while_connected(self, turn: Coroutine[Any, Any, T], receive: Receive) -> T:
        """The turn's result; it is cancelled as soon as the client has left.

        Raises what the turn raises, ProblemError if the client has left or the service stops.
        """
        task = self.start(turn)
        await connected_until(task, task, receive)
        return self.result(task)

    def result(self, task: asyncio.Task[T]) -> T:
        """What a task that is done has returned. Raises what it raised."""
        if task.cancelled() and self.stopping:
            raise ProblemError(problems.unavailable("stopping"))
        return task.result()

    def cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        """Cancel all; none runs any more when this returns."""
        self.stopping = True
        self.cancel_all()
        await ended(*self._tasks)


async def connected_until(
    happens: asyncio.Future[Any], task: asyncio.Task[Any], receive: Receive
) -> None:
    """The task is cancelled if the client leaves before it happens. Raises ProblemError then."""
    left = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({happens, left}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
        abandoned = not happens.done()
        if abandoned:
            await cancel_and_wait(task)
    if abandoned:
        raise ProblemError(problems.invalid("status_400", CLIENT_CLOSED))


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Returns once the task has ended. If the caller is cancelled meanwhile, raises CancelledError
    after that."""
    task.cancel()
    await ended(task)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
