"""Running a blocking function beside the event loop, so that its time-out can be kept.

Unlike with asyncio.to_thread, a function that never returns keeps neither the process alive nor
the loop from closing: its thread is left behind.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
Job = Callable[[], None]


async def in_daemon_thread(function: Callable[[], T]) -> T:
    future, job = _job(function)
    _start(job, getattr(function, "__name__", "tool"))
    return await future


class FewThreads:
    """At most `most` threads for one thing that may hang, so that a store which does not answer
    costs each caller its time and the process no more than these. Whoever gives up while it waits
    for its turn is passed over. A thread ends when nothing waits."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._running = 0
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], T]) -> T:
        future, job = _job(function)
        with self._lock:
            free = self._running < self._most
            if free:
                self._running += 1
            else:
                self._waiting.append(job)
        if free:
            _start(lambda: self._work(job), self._name)
        return await future

    def _work(self, job: Job | None) -> None:
        while job is not None:
            job()
            with self._lock:
                job = self._waiting.popleft() if self._waiting else None
                if job is None:
                    self._running -= 1


def _job(function: Callable[[], T]) -> tuple[asyncio.Future[T], Job]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return  # nobody waits any more
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        if future.cancelled():
            return
        result: T | None = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as exc:  # noqa: BLE001 - it is raised where the caller waits
            error = exc
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, error)

    return future, work


def _start(job: Job, name: str) -> None:
    threading.Thread(target=job, daemon=True, name=name).start()
