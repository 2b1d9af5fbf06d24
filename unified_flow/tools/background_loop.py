"""The event loop of other people's coroutine functions: one that blocks holds up neither a turn
nor Ctrl-C.

The loop outlasts the calls, so that a client that a tool keeps between two calls works in both. A
blocked loop is abandoned, and a new one takes its place.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from unified_flow.lib.threads import DaemonThreads

T = TypeVar("T")

ANSWER_S = 0.25  # else the loop is blocked by an earlier call
CLEANUP_S = 0.5  # that a cancelled call has for its `finally`


async def on_background_loop(make: Callable[[], Awaitable[T]]) -> T:
    """What `make()` returns; it is called and awaited over there, in the context of this task.

    On cancellation it is cancelled there and waited for, but not for long. Raises what it raises;
    asyncio.CancelledError also if it cancels itself.
    """
    await _replace_if_blocked()
    here = asyncio.get_running_loop()
    ended = asyncio.Event()

    async def call() -> T:
        try:
            return await make()
        finally:
            with suppress(RuntimeError):  # that loop is closed
                here.call_soon_threadsafe(ended.set)

    with _LOCK:
        future = asyncio.run_coroutine_threadsafe(call(), _CURRENT[0].loop)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLEANUP_S):
                await ended.wait()
        raise


class _BackgroundLoop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(DaemonThreads())
        self._abandoned = asyncio.Event()
        self.thread = threading.Thread(target=self._run, daemon=True, name="tools")
        self.thread.start()

    def _run(self) -> None:
        self.loop.run_until_complete(self._until_idle())
        self.loop.close()

    async def _until_idle(self) -> None:
        await self._abandoned.wait()
        while calls := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(calls)

    async def answers(self) -> bool:
        """False if it is blocked, or in a process that this one is a fork of."""
        if not self.thread.is_alive():
            return False
        answer = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop)
        done, _ = await asyncio.wait([asyncio.wrap_future(answer)], timeout=ANSWER_S)
        return bool(done)

    def abandon(self) -> None:
        """It ends after the last of its calls."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self._abandoned.set)


_CURRENT: list[_BackgroundLoop] = []
_LOCK = threading.Lock()


async def _replace_if_blocked() -> None:
    before = _CURRENT[0] if _CURRENT else None
    if before is not None and await before.answers():
        return
    with _LOCK:
        # Else another thread has replaced it meanwhile.
        if before is (_CURRENT[0] if _CURRENT else None):
            _CURRENT[:] = [_BackgroundLoop()]
            if before is not None:
                before.abandon()
