"""Waiting for tasks that must have ended before anybody goes on."""

from __future__ import annotations

import asyncio
from typing import Any


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
