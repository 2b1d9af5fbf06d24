"""Waiting for work that runs beside the caller's thread."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from unified_flow.lib.threads import wait_for


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
