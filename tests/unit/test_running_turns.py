"""A turn that is cancelled, and one in which something else was."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.types import Message

from unified_flow.api.app import make_app
from unified_flow.api.running_turns import Progress, RunningTurns, cancel_and_wait
from unified_flow.flow import UnifiedFlow
from unified_flow.wiring import wire


async def _waits(inner: asyncio.Future[None]) -> None:
    with Progress(60.0).of_turn():
        await inner


@pytest.mark.parametrize("within", [True, False])
def test_only_who_is_cancelled_is_cancelled(within: bool) -> None:
    async def run() -> None:
        inner = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_waits(inner))
        await asyncio.sleep(0)
        (inner if within else task).cancel()
        await task

    with pytest.raises(RuntimeError if within else asyncio.CancelledError):
        asyncio.run(run())


async def _slow_to_end(release: asyncio.Event, done: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await release.wait()
        done.append("journalled")


@pytest.mark.parametrize("whole", [False, True], ids=["one turn", "the service"])
def test_who_ends_a_turn_and_is_cancelled_goes_when_it_has_ended(whole: bool) -> None:
    async def run() -> tuple[bool, list[str]]:
        release, done, running = asyncio.Event(), list[str](), RunningTurns(2)
        turns = [running.start(_slow_to_end(release, done)) for _ in range(1 + whole)]
        await asyncio.sleep(0)
        ending = asyncio.create_task(running.aclose() if whole else cancel_and_wait(turns[0]))
        for _ in range(3):
            await asyncio.sleep(0)
            ending.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not ending.done(), "the turn has not ended"
        release.set()
        await asyncio.wait({ending})
        assert all(turn.done() for turn in turns)
        return ending.cancelled(), done

    assert asyncio.run(run()) == (True, ["journalled"] * (1 + whole))


def test_who_leaves_before_a_stream_begins_cancels_its_turn(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []

    async def refresh(*_: object) -> None:
        began.append("refresh")
        await asyncio.Event().wait()

    async def receive() -> Message:
        while not began:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        began.append(str(message.get("status")))

    monkeypatch.setattr(UnifiedFlow, "_refresh_documents", refresh)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/query/stream",
        "query_string": b"question=Who",
        "headers": [(b"host", b"localhost")],
    }

    async def run() -> None:
        app = make_app(wire(home))
        async with app.router.lifespan_context(app), asyncio.timeout(20):
            await app(scope, receive, send)

    asyncio.run(run())
    assert began[:2] == ["refresh", "499"]
