"""Running a blocking function beside the event loop, so that its time-out can be kept.

Unlike with asyncio.to_thread, a function that never returns keeps neither the process alive nor
the loop from closing: its thread is left behind.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache, partial
from time import monotonic, perf_counter
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[], Any]

IDLE_S = 1.0
ONE_WAIT_S = 0.5
QUICK_S = 0.001
TRIED_AGAIN = 100  # times as late as it has taken


async def in_daemon_thread(function: Callable[[], T]) -> T:
    return await asyncio.wrap_future(DaemonThreads().submit(copy_context().run, function))


class DaemonThreads(ThreadPoolExecutor):
    """One for each call: a thread of ThreadPoolExecutor's own keeps the process from ending."""

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future, job = _job(partial(function, *args, **kwargs))
        _start(job, getattr(function, "__name__", "tool"))
        return future


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns or raises, for a caller that blocks, whether or not a loop runs in its
    thread. It is cancelled if the caller is interrupted."""
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        while not wait([future], ONE_WAIT_S).done:
            pass  # a Ctrl-C that came just as the wait began has not ended it
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _background_loop() -> asyncio.AbstractEventLoop:
    """The one loop of the process: what is connected in it stays so between calls."""
    loop = asyncio.new_event_loop()
    _start(loop.run_forever, "background")
    return loop


if hasattr(os, "register_at_fork"):
    # A child has no thread that runs its parent's loop.
    os.register_at_fork(after_in_child=_background_loop.cache_clear)


class FewThreads:
    """At most `most` threads for one thing that may hang, so that a store which does not answer
    costs each caller its time and the process no more than these. A caller that gives up while it
    waits for its turn is passed over. A thread stays for a moment, for the next that may come: to
    begin one costs more than a search."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._threads = 0
        self._idle = 0
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()

    async def run(self, function: Callable[[], T]) -> T:
        future, job = _job(partial(copy_context().run, function))
        with self._changed:
            self._waiting.append(job)
            more = len(self._waiting) > self._idle and self._threads < self._most
            self._threads += more
            self._changed.notify()
        if more:
            _start(self._work, self._name)
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while job := self._next():
            job()

    def _next(self) -> Job | None:
        """None, and the thread has to end, if nothing comes for a while."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting, IDLE_S)
            self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


class QuickWork:
    """One kind of work, done at once while that takes less than QUICK_S on average, else by
    `threads`: where several want the interpreter of a busy loop, waiting for it costs more than a
    search. `expected` is the average before the first, in QUICK_S.

    What was expected to be quick and has become slow is tried at once again after a while, at the
    cost of a hundredth of the loop's time: in a busy service the clock of a thread counts how long
    that waits for the interpreter, so that it never becomes quick again."""

    def __init__(
        self,
        threads: Callable[[Job], Awaitable[Any]],
        *,
        averaged: int,
        expected: float,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._threads = threads
        self._clock = clock
        self._averaged = averaged
        self._average_s = self._expected_s = expected * QUICK_S
        self._again_at = 0.0

    async def run(self, work: Callable[[], T], *, slow: bool = False) -> T:
        """What `work` returns; `slow`: this time it may take longer."""
        if self._average_s >= QUICK_S > self._expected_s and monotonic() >= self._again_at:
            self._average_s = QUICK_S * (1 - 1 / self._averaged)  # too slow with the next slow one
        if self._average_s < QUICK_S and not slow:
            return self._timed(work, at_once=True)
        result: T = await self._threads(partial(self._timed, work, at_once=False))
        return result

    def _timed(self, work: Callable[[], T], *, at_once: bool) -> T:
        started = self._clock()
        try:
            return work()
        finally:
            took_s = self._clock() - started
            # Nothing counts for more than twice as much, so that one hiccup costs no threads.
            self._average_s += (min(took_s, 2 * QUICK_S) - self._average_s) / self._averaged
            if at_once and self._average_s >= QUICK_S:
                self._again_at = monotonic() + TRIED_AGAIN * took_s


def _job(function: Callable[[], T]) -> tuple[Future[T], Job]:
    future: Future[T] = Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as exc:  # noqa: BLE001 - it is raised where the caller waits
            future.set_exception(exc)
        else:
            future.set_result(result)

    return future, work


def _start(job: Job, name: str) -> None:
    threading.Thread(target=job, daemon=True, name=name).start()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns or raises, though the caller is cancelled meanwhile: the cancellation
    waits, and comes where the caller pauses next."""
    task, running, cancelled = asyncio.current_task(), asyncio.ensure_future(work), False
    while not running.done():
        try:
            await asyncio.shield(running)  # at a third of what asyncio.wait costs
        except asyncio.CancelledError:
            cancelled = cancelled or not running.cancelled()
        except BaseException:  # noqa: BLE001 - raised below
            break
    if cancelled and task is not None:
        task.uncancel()  # it counts once, so that time-outs still know their own
        task.cancel()
    return running.result()


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Returns once all have ended, in whatever way. Raises CancelledError then, and no sooner, if
    who waits was cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while running := {task for task in tasks if not task.done()}:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
