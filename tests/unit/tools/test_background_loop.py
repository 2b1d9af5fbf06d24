"""Coroutine functions as tools: what blocks one of them holds up nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools.running import run
from unified_flow.errors import ToolError, ToolTimeoutError
from unified_flow.tools import Arguments, Tool, ToolOutput, current_caller
from unified_flow.tools.functions import from_function, tool
from unified_flow.tools.plugins import ToolModules
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.results import ToolRequest

let_go = threading.Event()


@pytest.fixture(autouse=True)
def _threads_end_with_their_test() -> Iterator[None]:
    let_go.clear()
    yield
    let_go.set()


async def blocks() -> None:
    let_go.wait()


async def is_busy() -> None:
    while not let_go.is_set():
        pass


async def will_not_be_cancelled() -> None:
    while not let_go.is_set():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


async def waits_for_a_thread() -> None:
    await asyncio.to_thread(let_go.wait)


@pytest.mark.parametrize("hangs", [blocks, is_busy, will_not_be_cancelled, waits_for_a_thread])
def test_a_coroutine_function_that_hangs_keeps_neither_the_turn_nor_the_next_call(
    hangs: Any,
) -> None:
    async def fine() -> str:
        await asyncio.sleep(0)
        return "fine"

    box = Toolbox([from_function(tool(timeout_s=0.05)(hangs)), from_function(fine)])

    async def together() -> None:
        with pytest.raises(ToolTimeoutError, match=r"0\.05 s"):
            await box.call(*box.check(ToolRequest(tool=hangs.__name__, args={})))
        found = await box.call(*box.check(ToolRequest(tool="fine", args={})))
        assert found.result == "fine"

    asyncio.run(together())


def test_a_coroutine_function_tidies_up_when_its_time_is_over() -> None:
    tidied: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            tidied.append("closed")

    with pytest.raises(ToolTimeoutError):
        run(Toolbox([from_function(tool(timeout_s=0.05)(slow))]), "slow")
    assert tidied == ["closed"]


def test_what_a_coroutine_function_keeps_works_in_the_next_call_and_it_knows_its_caller() -> None:
    kept: list[asyncio.Queue[str]] = []

    async def keeps() -> str:
        if not kept:
            kept.append(asyncio.Queue())
        asyncio.get_running_loop().call_later(0.01, kept[0].put_nowait, current_caller().user_id)
        return await kept[0].get()

    box = Toolbox([from_function(keeps)])
    assert [run(box, "keeps").result for _ in range(2)] == ["default", "default"]


def test_one_that_is_cancelled_from_within_has_failed() -> None:
    async def gone() -> None:
        waited_for = asyncio.create_task(asyncio.sleep(5))
        waited_for.cancel()
        await waited_for

    async def built_in(args: Arguments) -> ToolOutput:
        raise asyncio.CancelledError

    made = Tool("built_in", "", Arguments, frozenset(), built_in)
    for each in (from_function(gone), made):
        with pytest.raises(ToolError, match="was cancelled by something"):
            run(Toolbox([each]), each.name)


A_TOOL = """
from tests.unit.tools.test_background_loop import let_go
from unified_flow.tools import Arguments, Tool

async def run(args):
    let_go.wait()

made = Tool("made", "Blocks.", Arguments, frozenset(), run, timeout_s=0.05)
"""


def test_a_tool_of_a_module_that_blocks_ends_in_time_as_well(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(A_TOOL)
    with pytest.raises(ToolTimeoutError, match=r"0\.05 s"):
        run(Toolbox(ToolModules([str(tmp_path / "own.py")]).tools()), "made")
