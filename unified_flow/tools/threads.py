"""Running a blocking function beside the event loop, so that its time-out can be kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """Unlike asyncio.to_thread: a function that never returns does not keep the process alive."""
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
        result: T | None = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as exc:  # noqa: BLE001 - it is raised where the caller waits
            error = exc
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True, name=getattr(function, "__name__", "tool")).start()
    return await future
