"""A turn that is cancelled, and one in which something else was."""

from __future__ import annotations

import asyncio

import pytest

from unified_flow.api.running import unless_cancelled


async def _on_a_cancelled_future() -> None:
    inner = asyncio.get_running_loop().create_future()
    inner.cancel()
    await inner


def test_what_was_cancelled_inside_is_a_failure() -> None:
    with pytest.raises(RuntimeError, match="was cancelled"):
        asyncio.run(unless_cancelled(_on_a_cancelled_future()))


def test_who_is_cancelled_is_cancelled() -> None:
    async def run() -> bool:
        task = asyncio.create_task(unless_cancelled(asyncio.sleep(60)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(run())
