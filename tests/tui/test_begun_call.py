"""A turn that stopped in the middle of a write goes on only as a person says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.entry import is_open
from monitor.app import Monitor
from tests.answers import every_phase_by_model
from tests.integration.test_tools import Asked
from tests.servers.model_server import ModelServer
from tests.tui.scene import put, until
from tests.tui.seen import problem, rows, text, told, top

pytestmark = pytest.mark.anyio
SIZE = (140, 40)
BREAKS = """
from pathlib import Path

def append(path: str, text: str) -> str:
    \"\"\"Append a line to a file.

    Args:
        path: where
        text: what
    \"\"\"
    file = Path(path)
    first = not file.exists()
    file.write_text(text if first else file.read_text() + text)
    if first:
        raise OSError("no reply")
    return "appended"
"""


@pytest.fixture
def target(home: Path, model_server: ModelServer, tmp_path: Path) -> Path:
    """What the tool has written before it broke off."""
    (home / "mine.py").write_text(BREAKS)
    (home / "unified_flow.toml").write_text('[tools]\nmodules = ["mine.py"]\nallow = ["append"]\n')
    target = tmp_path / "target"
    asked = Asked(home, model_server)("append", path=str(target), text="x")
    assert asked.returncode == 1
    assert target.read_text() == "x"
    return target


@every_phase_by_model
@pytest.mark.parametrize(("key", "written"), [("2", "xx"), ("3", "x")])
async def test_the_call_is_made_again_or_counted_as_done(
    queue: InterventionQueue, monitor: Callable[..., Monitor], target: Path, key: str, written: str
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t", "enter")
        await until(pilot, lambda: "whether it wrote is unknown" in text(pilot))
        assert "append" in text(pilot)
        await pilot.press(key)
        await until(pilot, lambda: "retried and resolved 1" in told(pilot))
    assert target.read_text() == written
    assert not any(map(is_open, queue.entries()))


@every_phase_by_model
async def test_who_leaves_it_changes_nothing(
    queue: InterventionQueue, monitor: Callable[..., Monitor], target: Path
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t", "enter")
        await until(pilot, lambda: "whether it wrote is unknown" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "turn 1 was left as it is" in problem(pilot))
    assert target.read_text() == "x"
    assert all(map(is_open, queue.entries()))


async def test_a_question_asks_for_its_answer(
    queue: InterventionQueue, monitor: Callable[..., Monitor]
) -> None:
    put(queue, type="escalation", error_message="which colour?", turn_id=1)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: "your answer: the turn goes on with it" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "what is the answer?" in problem(pilot))


async def test_what_a_retry_came_to_is_what_is_shown_and_asked(
    queue: InterventionQueue, monitor: Callable[..., Monitor]
) -> None:
    """A question that was answered, and then a tool that nobody has allowed."""
    first = put(queue, type="escalation", error_message="which colour?", turn_id=1)
    put(
        queue,
        type="permission",
        error_type="ToolDeniedError",
        error_message="nobody has allowed it",
        tool="note.write",
        turn_id=1,
        retry_of=first,
    )
    async with monitor().run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "now: ToolDeniedError: nobody has allowed it" in text(pilot))
        assert any("ToolDeniedError" in cell.text for cell in rows(pilot).rows[0].cells)
        await pilot.press("t")
        await until(pilot, lambda: top(pilot) == "RetryForm")
        assert "note.write was refused" in text(pilot)
