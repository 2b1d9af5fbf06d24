"""A queue that can be read and not written, for somebody whom modes do stop, unlike root."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.home import archive_file, queue_file, state_folder
from tests import forked
from tests.tui.scene import put

# The first look loads every module that is imported late: who is nobody may not be allowed to read
# the interpreter's.
LOOK = """
import asyncio, os, sys
from pathlib import Path
from interventions import InterventionQueue
from monitor.app import Monitor
from monitor.app import screen_text
from monitor.core.source import LiveSource

async def look(home):
    source = LiveSource(InterventionQueue(home))
    app = Monitor(source, source.read())
    async with app.run_test(size=(100, 24)) as pilot:
        for key in ("r", "d", "s", "a", "t", "z"):
            await pilot.press(key)
            print(type(app.screen).__name__)
            await pilot.press("escape")
        await pilot.press("enter")
        await pilot.pause(0.3)
        await pilot.press("escape")
        print(screen_text(app))

asyncio.run(look(sys.argv[1]))
print("as nobody")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
asyncio.run(look(sys.argv[2]))
"""
KEYS = 6


@pytest.fixture
def outside() -> Iterator[Path]:
    """Beside pytest's own temporary folders, which are private to whoever runs the tests."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def _look(first: Path, then: Path) -> list[str]:
    done = forked.run(
        [sys.executable, "-c", LOOK, str(first), str(then)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("as nobody\n")[2].splitlines()


def test_a_folder_that_cannot_be_written_is_read_only(home: Path, outside: Path) -> None:
    for place in (home, outside):
        put(InterventionQueue(place), error_type="Seen")
    for file in outside.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    before = queue_file(outside).read_bytes()
    told = _look(home, outside)
    assert told[:KEYS] == ["TriageScreen"] * KEYS
    shown = "\n".join(told[KEYS:])
    assert f"read-only: {state_folder(outside)} cannot be written" in " ".join(shown.split())
    assert "Seen" in shown
    assert queue_file(outside).read_bytes() == before
    assert not archive_file(outside).exists()


def test_a_queue_that_cannot_be_read_says_so(home: Path, outside: Path) -> None:
    for place in (home, outside):
        put(InterventionQueue(place))
    state_folder(outside).chmod(0o755)
    queue_file(outside).chmod(0o000)
    shown = "\n".join(_look(home, outside)[KEYS:])
    assert "UNREADABLE" in shown
    assert "ermission denied" in shown
