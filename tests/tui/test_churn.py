"""Twenty changes a second: the keys work and the memory stays flat.

SOAK=1 goes on for a minute, and measures how quick the keys are; and opens what can be opened two
hundred times.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.home import archive_file, transitions_file
from interventions.retry.contract import find_turn_reader
from monitor.app import Monitor
from tests.tui.other_process import OtherProcess
from tests.tui.scene import fill, put, until
from tests.tui.seen import rows, triage

pytestmark = pytest.mark.anyio
SOAK = bool(os.environ.get("SOAK"))
SECONDS = 60.0 if SOAK else 3.0
# Of three seconds on a busy machine, the last ones still hold what is read once.
MOST_GROWTH_MB = 8 if SOAK else 24


@pytest.fixture(autouse=True)
def _garbage_goes_soon() -> Iterator[None]:
    """As in a monitor, for memory is measured."""
    usual = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*usual)


async def _key_to_paint_s(pilot: Pilot[Any], key: str) -> float:
    painted = asyncio.Event()
    before = rows(pilot).cursor_key
    started = time.perf_counter()
    pilot.app.post_message(Key(key, key))
    while rows(pilot).cursor_key == before:
        if rows(pilot).cursor == {"j": len(rows(pilot).rows) - 1, "k": 0}[key]:
            break  # its row has become the last, or the first
        assert time.perf_counter() - started < 20, "the key moved nothing"
        await asyncio.sleep(0.001)
    pilot.app.screen.call_after_refresh(painted.set)
    await painted.wait()
    return time.perf_counter() - started


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _long_past(queue: InterventionQueue, home: Path, count: int) -> None:
    """An archive and a journal as they are after years."""
    first = fill(queue, 1)[0]
    queue.resolve(first, "mended")
    closed, (line,) = queue.find(first), queue.journal(first)
    with archive_file(home).open("w") as file, transitions_file(home).open("a") as journal:
        for number in range(count):
            own = f"int_20250101_000000_{number:06x}"
            alike = f"{number // 50:016x}"
            file.write(json.dumps({**closed, "id": own, "fingerprint": alike}) + "\n")
            journal.write(json.dumps({**line, "id": own}) + "\n")


@pytest.mark.long
@pytest.mark.parametrize(("tab", "archived"), [("1", 5000), ("2", 5000), ("5", 5000)])
async def test_twenty_changes_a_second(
    queue: InterventionQueue,
    monitor: Callable[..., Monitor],
    home: Path,
    other: OtherProcess,
    tab: str,
    archived: int,
) -> None:
    _long_past(queue, home, archived)
    for intervention_id in fill(queue, 20):
        queue.assign(intervention_id, "ada")
    for _ in range(3):  # of today, for the trends
        put(queue)
    # What it loads once, some seconds after the start: 10 MB of modules.
    find_turn_reader().latest(home, 1)
    async with monitor().run_test(size=(130, 40)) as pilot:
        await pilot.press(tab)
        await until(pilot, lambda: len(rows(pilot).rows) >= {"1": 20, "2": 500, "5": 2}[tab])
        # What is read once, whole: the past of the first entry that is shown.
        last = "Entries closed" if tab == "5" else "History"
        await until(pilot, lambda: last in [part.title for part in triage(pilot).detail.parts])
        churning = asyncio.create_task(asyncio.to_thread(other.churn, home, SECONDS, 20))
        waits, needed, memory, key = [], [], [], "j"
        while not churning.done():
            before = time.process_time()
            waits.append(await _key_to_paint_s(pilot, key))
            needed.append(time.process_time() - before)
            key = "k" if key == "j" else "j"
            memory.append(_resident_bytes())
            await asyncio.sleep(0.1)
        assert await churning >= SECONDS * 15
        # At first it comes to the most that it needs: what was read and what is being read at once.
        third = len(memory) // 3
        growth = (median(memory[2 * third :]) - median(memory[third : 2 * third])) / 1e6
        ms, own_ms = (sorted(each * 1000 for each in found) for found in (waits, needed))
        high, own_high = (found[int(len(found) * 0.99)] for found in (ms, own_ms))
        print(f"tab {tab}, {archived} archived: {median(ms):.0f} ms median, ", end="")
        print(f"{high:.0f} in 99 of 100, {ms[-1]:.0f} at worst; ", end="")
        print(f"of the processor {median(own_ms):.0f}, {own_high:.0f}, {own_ms[-1]:.0f}")
        print(f"{growth:.1f} MB more in the last third")
        assert high < 100 or not SOAK
        assert growth < MOST_GROWTH_MB


@pytest.mark.parametrize(
    "keys",
    [["question_mark", "escape"], ["r", "escape"], ["5", "1"], ["enter", "escape"]],
    ids=["help", "form", "trends", "detail"],
)
async def test_what_is_opened_again_and_again_leaves_nothing_behind(
    queue: InterventionQueue, monitor: Callable[..., Monitor], keys: list[str]
) -> None:
    fill(queue, 20)
    times = 200 if SOAK else 6
    async with monitor().run_test(size=(100, 30)) as pilot:
        memory, widgets = [], []
        for _ in range(times):
            await pilot.press(*keys)
            memory.append(_resident_bytes())
            widgets.append(len(pilot.app._registry))
        half = times // 2
        growth = (median(memory[half:]) - median(memory[:half])) / 1e6
        print(f"{keys[0]}, {times} times: {growth:.1f} MB more in the second half")
        assert max(widgets[half:]) <= max(widgets[:half])
        assert growth < 4
