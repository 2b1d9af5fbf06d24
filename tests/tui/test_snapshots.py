"""How it looks, as pictures. UPDATE_SNAPSHOTS=1 pytest tests/tui/test_snapshots.py draws them anew;
look at them before they are committed.
"""

from __future__ import annotations

import difflib
import html
import os
import re
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.home import error_log_folder, queue_file
from interventions.retry.contract import LiveTurn
from interventions.times import to_text
from monitor.app import Monitor, screen_svg
from monitor.core.source import Background, LiveSource, Snapshot
from tests.tui.scene import NOW, fill, put, turn, until
from tests.tui.seen import triage

pytestmark = pytest.mark.anyio
SAVED = Path(__file__).parent / "snapshots"
_TEXT = re.compile(r"<text [^>]*>(.*?)</text>")


class StillSource(LiveSource):
    """Time stands still, and the folder has the same name on every machine."""

    def __init__(self, queue: InterventionQueue) -> None:
        super().__init__(queue, lambda: NOW)
        self.title = "~/project"
        self.told_of: set[str] = set()

    def read(self) -> Snapshot:
        found = super().read()
        if found.trouble is None:
            return found
        what, todo = (
            text.replace(str(self.home), self.title)
            for text in (found.trouble.what, found.trouble.todo)
        )
        return replace(found, trouble=replace(found.trouble, what=what, todo=todo))

    def background(self, intervention_id: str) -> Background:
        found = super().background(intervention_id)
        self.told_of.add(intervention_id)
        return found


def clock() -> datetime:
    return NOW


@pytest.fixture(autouse=True)
def _nothing_counts_as_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or what is under the cursor would be NEW in the picture of a fast machine alone."""
    monkeypatch.setattr("monitor.screens.triage._SEEN_AFTER_S", 3600)


async def _compare(
    queue: InterventionQueue, name: str, size: tuple[int, int], *keys: str, theme: str = ""
) -> None:
    source = StillSource(queue)
    app = Monitor(source, source.read(), clock)
    async with app.run_test(size=size) as pilot:
        app.theme = theme or app.theme
        await pilot.press(*keys)
        await _settle(pilot, source)
        drawn = await _still(pilot)
    saved = SAVED / f"{name}.svg"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        saved.write_text(drawn)
    expected = saved.read_text()
    if drawn != expected:
        wanted, got = _lines(expected), _lines(drawn)
        difference = "\n".join(difflib.unified_diff(wanted, got, "saved", "drawn", lineterm=""))
        pytest.fail(f"{name} looks different (or only its colours do)\n{difference}")


async def _settle(pilot: Pilot[None], source: StillSource) -> None:
    """Until the workers have read what belongs to the entry under the cursor."""
    found = triage(pilot)

    def read() -> bool:
        entry = found.current()
        filled = found.tab.name == "open" or found.tab.feed is not None
        is_read = entry is None or not found.detail.display or entry["id"] in source.told_of
        return filled and is_read

    await until(pilot, read)
    await until(pilot, lambda: found.pulse is not None)
    found.show()
    await pilot.pause()


async def _still(pilot: Pilot[None]) -> str:
    """The picture once it no longer changes."""
    before = ""
    for _ in range(200):
        drawn = screen_svg(pilot.app)
        if drawn == before:
            return drawn
        before = drawn
        await pilot.pause(0.1)
    raise AssertionError("it goes on changing")


def _lines(svg: str) -> list[str]:
    return [html.unescape(found) for found in _TEXT.findall(svg)]


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 36), (240, 70)], ids=str)
async def test_a_dozen(queue: InterventionQueue, size: tuple[int, int]) -> None:
    fill(queue, 12)
    await _compare(queue, f"dozen-{size[0]}", size, "j")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_others(queue: InterventionQueue, size: tuple[int, int]) -> None:
    fill(queue, 3)
    for number in range(6, 0, -1):
        moment = NOW - timedelta(hours=number)
        one = {"session_id": "s", "turn_id": number, "created_at": moment, "phase": "synthesis"}
        put(queue, id=f"int_1_{number:06x}", error_type="ConnectError", **one)
    for number, severity in enumerate(("high", "critical"), 7):
        one = {"session_id": "s", "turn_id": number, "created_at": NOW, "severity": severity}
        put(
            queue,
            error_type="HTTPStatusError",
            error_message=f"40{number}",
            fingerprint=str(number),
            **one,
        )
    await _compare(queue, f"others-{size[0]}", size, "g")


async def test_light(queue: InterventionQueue) -> None:
    fill(queue, 12)
    await _compare(queue, "light-120", (120, 30), "j", "space", theme="light")


async def test_fifty(queue: InterventionQueue) -> None:
    fill(queue, 50)
    await _compare(queue, "fifty-100", (100, 30), "G")


@pytest.mark.parametrize("width", [60, 120])
async def test_nothing_to_do(queue: InterventionQueue, width: int) -> None:
    put(queue, created_at=NOW)
    shutil.rmtree(error_log_folder(queue.home))
    queue_file(queue.home).write_text('{"version": 1, "interventions": []}')
    await _compare(queue, f"empty-{width}", (width, 16))


async def test_first_run(queue: InterventionQueue) -> None:
    await _compare(queue, "first-run-80", (80, 16))


async def test_corrupt(queue: InterventionQueue) -> None:
    queue_file(queue.home).parent.mkdir()
    queue_file(queue.home).write_text("{")
    await _compare(queue, "corrupt-80", (80, 16))


async def test_detail_when_narrow(queue: InterventionQueue) -> None:
    fill(queue, 3)
    await _compare(queue, "detail-60", (60, 40), "enter")


@pytest.mark.parametrize("width", [60, 80])
async def test_a_form(queue: InterventionQueue, width: int) -> None:
    fill(queue, 12)
    await _compare(queue, f"form-{width}", (width, 24), "space", "space", "d")


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("key", ["r", "s"])
async def test_a_form_on_a_large_terminal(queue: InterventionQueue, key: str, theme: str) -> None:
    fill(queue, 12)
    await _compare(queue, f"form-200-{key}-{theme}", (200, 60), "j", key, theme=theme)


async def test_help(queue: InterventionQueue) -> None:
    fill(queue, 3)
    await _compare(queue, "help-80", (80, 24), "question_mark")


async def test_a_filter_that_cannot_be_meant(queue: InterventionQueue) -> None:
    fill(queue, 3)
    await _compare(queue, "filter-80", (80, 16), "slash", *"sev:x")


@pytest.mark.parametrize("size", [(60, 20), (120, 40)], ids=str)
async def test_trends(queue: InterventionQueue, size: tuple[int, int]) -> None:
    fill(queue, 40)
    await _compare(queue, f"trends-{size[0]}", size, "5")


class _Reader:
    """One turn that runs, and one that is answered."""

    def latest(self, home: Path, limit: int) -> list[LiveTurn]:
        def step(kind: str, name: str, ago_s: float, took_s: float | None) -> dict[str, Any]:
            at = to_text(NOW - timedelta(seconds=ago_s))
            status = "running" if took_s is None else "completed"
            took = took_s and took_s * 1000
            text = "{}" if kind != "phase" else ""
            return dict(
                kind=kind, name=name, status=status, started_at=at, duration_ms=took, text=text
            )

        steps = [
            step("phase", "query_analyzer", 9, 2),
            step("model", "qwen2.5", 8.9, 1.8),
            step("phase", "reflection", 7, 1),
            step("phase", "coordinator", 6, 4.5),
            step("tool", "doc.search", 5.8, 4),
            step("phase", "synthesis", 1.5, None),
        ]
        ribbon = turn("synthesis")["ribbon"]
        began = to_text(NOW - timedelta(seconds=9))
        asked = {"session_id": "s", "question": "What is a topic?", "started_at": began}
        running: dict[str, Any] = {
            "turn_id": 2,
            "status": "running",
            "doing": "synthesis (qwen2.5)",
        }
        answered: dict[str, Any] = {
            "turn_id": 1,
            "status": "answered",
            "answer": "A topic is a named bus over which nodes exchange messages.",
            "sources": ["robots.md:5: A topic is a named bus"],
        }
        whole = {**asked, "ribbon": ribbon, "steps": steps}
        return [cast(LiveTurn, {**whole, **each}) for each in (running, answered)]


@pytest.mark.parametrize(("size", "keys"), [((120, 30), ["3"]), ((80, 24), ["3", "j", "enter"])])
async def test_a_live_turn(
    queue: InterventionQueue,
    size: tuple[int, int],
    keys: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("test", f"{__name__}:_Reader", "interventions.turns")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([point]))
    fill(queue, 3)
    await _compare(queue, f"turn-{size[0]}", size, *keys)
