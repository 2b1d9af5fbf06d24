"""A tool that was refused is allowed from the retry form, and its turn goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interventions import InterventionQueue
from monitor.app import Monitor
from tests.answers import every_phase_by_model, journal_lines
from tests.integration.test_tools import OWN, Asked
from tests.servers.model_server import ModelServer
from tests.tui.scene import put, until
from tests.tui.seen import problem, text, told, top

pytestmark = [pytest.mark.anyio, every_phase_by_model]
SIZE = (140, 40)


@pytest.fixture
def target(home: Path, model_server: ModelServer, tmp_path: Path) -> Path:
    """What the tool would have written, had it been allowed to."""
    (home / "mine.py").write_text(OWN)
    (home / "unified_flow.toml").write_text('[tools]\nmodules = ["mine.py"]\n')
    target = tmp_path / "target"
    asked = Asked(home, model_server)("append", path=str(target), text="hello")
    assert asked.returncode == 1
    assert not target.exists()
    return target


async def test_a_refused_tool_is_allowed_once(
    queue: InterventionQueue, monitor: Callable[..., Monitor], home: Path, target: Path
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: "append was refused" in text(pilot))
        await pilot.press("tab", *"never", "enter")
        await until(pilot, lambda: "'never' allows nothing" in problem(pilot))
        await pilot.press("home", "ctrl+k", *"once", "enter")
        await until(pilot, lambda: "retried and resolved 1" in told(pilot))
        assert top(pilot) == "TriageScreen"
    assert target.read_text() == "hello\n"
    (resumed,) = (line for line in journal_lines(home) if line["event"] == "turn_resumed")
    assert resumed["given"]["grant"] == "once"
    assert queue.entries()[0]["resolutions"][-1]["verified"]


async def test_without_a_word_it_stays_refused(
    monitor: Callable[..., Monitor], target: Path
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: "append was refused" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "failed again" in problem(pilot))
    assert not target.exists()


async def test_nothing_is_to_be_allowed_where_nothing_was_refused(
    queue: InterventionQueue, monitor: Callable[..., Monitor]
) -> None:
    put(queue, turn_id=3)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: top(pilot) == "RetryForm")
        assert not pilot.app.screen.query("#grant")
