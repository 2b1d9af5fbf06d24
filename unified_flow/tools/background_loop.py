"""The event loop of other people's coroutine functions: one that blocks holds up neither a turn
nor Ctrl-C.

The loop outlasts the calls, so that a client that a tool keeps between two calls works in both. A
blocked loop is abandoned, and a new one takes its place.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

ANSWER_S = 0.25  # else the loop is blocked by an earlier call
CLEANUP_S = 0.5  # that a cancelled call has for its `finally`


async def on_background_loop(make: Callable[[], Awaitable[T]]) -> T:
    """What `make()` returns; it is called and awaited over there, in the context of this task.

    On cancellation it is cancelled there and waited for, but not for long. Raises what it raises;
    asyncio.CancelledError also if it cancels itself.
    """
    background = await _acquire_loop()
    here = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = here.create_future()
    tasks: list[asyncio.Task[T]] = []

    async def call() -> T:
        return await make()

    def begin() -> None:
        tasks.append(background.loop.create_task(call()))
        tasks[0].add_done_callback(end)

    def end(task: asyncio.Task[T]) -> None:
        background.count_down()
        with suppress(RuntimeError):  # that loop is closed
            here.call_soon_threadsafe(_settle, outcome, task)

    def cancel() -> None:
        tasks[0].cancel()

    background.loop.call_soon_threadsafe(begin)
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        if not outcome.done():
            background.loop.call_soon_threadsafe(cancel)
            await asyncio.wait([outcome], timeout=CLEANUP_S)
        outcome.cancel()
        raise


def _settle(outcome: asyncio.Future[T], task: asyncio.Task[T]) -> None:
    if outcome.done():
        return  # nobody waits any more
    if task.cancelled():
        outcome.cancel()
    elif (error := task.exception()) is not None:
        outcome.set_exception(error)
        outcome.exception()  # seen, also if nobody waits any more
    else:
        outcome.set_result(task.result())


class _BackgroundLoop:
    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        self.calls = 0
        self.is_abandoned = False
        self._done = asyncio.Event()
        started = threading.Event()
        self.thread = threading.Thread(
            target=lambda: asyncio.run(self._run(started)), daemon=True, name="tools"
        )
        self.thread.start()
        started.wait()

    async def _run(self, started: threading.Event) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_default_executor(_DaemonThreads())
        started.set()
        await self._done.wait()

    async def answers(self) -> bool:
        """False if it is blocked, or in a process that this one is a fork of."""
        if not self.thread.is_alive():
            return False
        here = asyncio.get_running_loop()
        answered = asyncio.Event()

        def answer() -> None:
            with suppress(RuntimeError):  # that loop is closed
                here.call_soon_threadsafe(answered.set)

        self.loop.call_soon_threadsafe(answer)
        try:
            async with asyncio.timeout(ANSWER_S):
                await answered.wait()
        except TimeoutError:
            return False
        return True

    def abandon(self) -> None:
        """It ends after the last of its calls."""
        self.is_abandoned = True
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self._end_if_idle)

    def count_down(self) -> None:
        with _LOCK:
            self.calls -= 1
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        with _LOCK:
            if self.is_abandoned and not self.calls:
                self._done.set()


class _DaemonThreads(ThreadPoolExecutor):
    """For `asyncio.to_thread` in a tool: a thread of ThreadPoolExecutor's own keeps the process
    from ending."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*args, **kwargs)
            except BaseException as exc:  # noqa: BLE001 - it is raised where the caller waits
                future.set_exception(exc)
            else:
                future.set_result(result)

        threading.Thread(target=work, daemon=True, name="tools").start()
        return future


_CURRENT: list[_BackgroundLoop] = []
_LOCK = threading.Lock()


async def _acquire_loop() -> _BackgroundLoop:
    """A loop that answers, with one more call counted."""
    background = _CURRENT[0] if _CURRENT else None
    answers = background is not None and await background.answers()
    with _LOCK:
        # Else another thread has replaced it meanwhile.
        if not answers and background is (_CURRENT[0] if _CURRENT else None):
            _CURRENT[:] = [_BackgroundLoop()]
            if background is not None:
                background.abandon()
        _CURRENT[0].calls += 1
        return _CURRENT[0]
