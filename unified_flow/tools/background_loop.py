"""The event loop of other people's coroutine functions: what blocks it holds up neither a turn
nor Ctrl-C.

It lives in a thread and outlasts the calls, so that a client that a tool keeps between two calls
still works in the second. A loop that is blocked is left behind, and a new one takes its place.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

ANSWERS_WITHIN_S = 0.25  # else the loop is blocked by an earlier call
TIDIES_WITHIN_S = 0.5  # that a cancelled call has for its `finally`


async def on_background_loop(make: Callable[[], Awaitable[T]]) -> T:
    """What `make()` comes to, both made and awaited over there, in the context of this task.

    Cancelled, it is cancelled there and waited for, but not for long. Raises what it raises;
    asyncio.CancelledError also if it cancels itself.
    """
    own = await _running()
    here = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = here.create_future()
    tasks: list[asyncio.Task[T]] = []

    async def made() -> T:
        return await make()

    def begin() -> None:
        tasks.append(own.loop.create_task(made()))
        tasks[0].add_done_callback(end)

    def end(task: asyncio.Task[T]) -> None:
        own.has_ended_one()
        with suppress(RuntimeError):  # nobody waits: that loop is closed
            here.call_soon_threadsafe(_settle, outcome, task)

    def cancel() -> None:
        tasks[0].cancel()

    own.loop.call_soon_threadsafe(begin)
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        if not outcome.done():
            own.loop.call_soon_threadsafe(cancel)
            await asyncio.wait([outcome], timeout=TIDIES_WITHIN_S)
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
        self.is_left = False
        self._over = asyncio.Event()
        up = threading.Event()
        self.thread = threading.Thread(
            target=lambda: asyncio.run(self._turn(up)), daemon=True, name="tools"
        )
        self.thread.start()
        up.wait()

    async def _turn(self, up: threading.Event) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_default_executor(_DaemonThreads())
        up.set()
        await self._over.wait()

    async def answers(self) -> bool:
        """Whether it turns: it may be blocked, or in a process that this one is a fork of."""
        if not self.thread.is_alive():
            return False
        here = asyncio.get_running_loop()
        turned = asyncio.Event()

        def turn() -> None:
            with suppress(RuntimeError):  # nobody waits: that loop is closed
                here.call_soon_threadsafe(turned.set)

        self.loop.call_soon_threadsafe(turn)
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await turned.wait()
        except TimeoutError:
            return False
        return True

    def leave(self) -> None:
        """It ends with the last of its calls."""
        self.is_left = True
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self._end_if_idle)

    def has_ended_one(self) -> None:
        with _CHANGING:
            self.calls -= 1
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        with _CHANGING:
            if self.is_left and not self.calls:
                self._over.set()


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
_CHANGING = threading.Lock()


async def _running() -> _BackgroundLoop:
    """One that turns, with one more call to come."""
    own = _CURRENT[0] if _CURRENT else None
    turns = own is not None and await own.answers()
    with _CHANGING:
        if not turns and own is (_CURRENT[0] if _CURRENT else None):  # else another has seen to it
            _CURRENT[:] = [_BackgroundLoop()]
            if own is not None:
                own.leave()
        _CURRENT[0].calls += 1
        return _CURRENT[0]
