"""A turn that is cancelled, and one in which something else was."""

from __future__ import annotations

import asyncio

import pytest

from unified_flow.api.running_turns import RunningTurns, cancel_and_wait


async def _on_a_cancelled_future() -> None:
    inner = asyncio.get_running_loop().create_future()
    inner.cancel()
    await inner


def test_what_was_cancelled_inside_is_a_failure() -> None:
    async def run() -> None:
        running = RunningTurns(1)
        task = running.start(_on_a_cancelled_future())
        await asyncio.wait({task})
        running.result(task)

    with pytest.raises(RuntimeError, match="was cancelled"):
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
