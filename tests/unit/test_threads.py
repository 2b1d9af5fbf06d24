"""Waiting for work that runs beside the caller's thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

from unified_flow.lib.threads import TRIED_AGAIN, Job, QuickWork, wait_for


def test_ctrl_c_ends_a_wait_also_if_it_does_not_wake_it() -> None:
    """As if it came just as the wait begins."""
    began = threading.Event()

    async def endless() -> None:
        began.set()
        await asyncio.Event().wait()

    def interrupt() -> None:
        began.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        wait_for(endless())


def test_work_that_was_slow_for_a_moment_is_done_at_once_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr("unified_flow.lib.threads.monotonic", lambda: now_s)

    def clock() -> float:
        nonlocal now_s
        now_s += 1.0  # and so does each work
        return now_s

    async def threads(work: Job) -> Any:
        work()
        return "in a thread"

    async def run() -> list[str]:
        nonlocal now_s
        work = QuickWork(threads, averaged=2, expected=0, clock=clock)
        where = []
        for later_s in (0, 0, TRIED_AGAIN / 2, TRIED_AGAIN / 2, 0):
            now_s += later_s
            where.append(await work.run(lambda: "at once"))
        return where

    at_once, thread = "at once", "in a thread"
    assert asyncio.run(run()) == [at_once, thread, thread, at_once, thread]
