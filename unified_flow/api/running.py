"""The turns that this server runs: not too many at once, and none left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.types import Receive

from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.problem import CLIENT_CLOSED
from unified_flow.api.problems.rendering import ProblemError
from unified_flow.lib.threads import ended

T = TypeVar("T")


@dataclass
class Running:
    """`limit` turns at once. Once it `stops`, no turn begins, and those that run are cancelled:
    the flow journals them as interrupted."""

    limit: int
    stopping: bool = False
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Raises ProblemError where there is no room."""
        if self.stopping or len(self._tasks) >= self.limit:
            work.close()
            if self.stopping:
                raise ProblemError(problems.unavailable())
            raise ProblemError(problems.limited("concurrent_requests"))
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def while_connected(self, work: Coroutine[Any, Any, T], receive: Receive) -> T:
        """The result of `work`, which is cancelled as soon as nobody waits for it any more.

        Raises what `work` raises, ProblemError if the client has gone or the service stops.
        """
        task = self.start(work)
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            left = not task.done()
            if left:
                await cancelled(task)
        if left:
            raise ProblemError(problems.invalid("status_400", CLIENT_CLOSED))
        return self.result(task)

    def result(self, task: asyncio.Task[T]) -> T:
        """Of a task that is done. Raises what it raised."""
        if task.cancelled() and self.stopping:
            raise ProblemError(problems.unavailable())
        return task.result()

    def cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def end(self) -> None:
        """Stop: nothing runs any more when this returns."""
        self.stopping = True
        self.cancel_all()
        await ended(*self._tasks)


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel it and wait until it has ended; how it ended is told where it was begun. Raises
    CancelledError after that, if who waits was cancelled too."""
    task.cancel()
    await ended(task)


async def unless_cancelled(work: Awaitable[T]) -> T:
    """Its result. Where something that it waited for was cancelled, and not who waits here, that is
    a failure like any other: RuntimeError."""
    try:
        return await work
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("something that the turn waited for was cancelled") from exc


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
