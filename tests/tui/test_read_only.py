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
from monitor.app import Monitor, screen_text
from monitor.core.source import LiveSource
from textual import _wait

_wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = 0.005, 0.005 / 20

async def look(home):
    source = LiveSource(InterventionQueue(home))
    app = Monitor(source, source.read())
    async with app.run_test(size=(100, 24)) as pilot:
        for key in ("r", "d", "s", "a", "t", "z"):
            await pilot.press(key)
            print(type(app.screen).__name__)
            await pilot.press("escape")
        for key in ("enter", "escape"):
            await pilot.press(key)
            await pilot.pause()
        print(screen_text(app))

first, *others = sys.argv[1:]
asyncio.run(look(first))
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for home in others:
    print("as nobody")
    asyncio.run(look(home))
"""
KEYS = 6


@pytest.fixture
def outside() -> Iterator[Path]:
    """Beside pytest's own temporary folders, which are private to whoever runs the tests."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def _look(*homes: Path) -> list[list[str]]:
    """What is seen of each but the first."""
    done = forked.run(
        [sys.executable, "-c", LOOK, *map(str, homes)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [shown.splitlines() for shown in done.stdout.split("as nobody\n")[1:]]


def test_what_cannot_be_written_is_read_only_and_what_cannot_be_read_says_so(
    home: Path, outside: Path
) -> None:
    read_only, unreadable = outside / "read-only", outside / "unreadable"
    for place in (home, read_only, unreadable):
        place.mkdir(exist_ok=True)
        put(InterventionQueue(place), error_type="Seen")
    for file in read_only.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    state_folder(unreadable).chmod(0o755)
    queue_file(unreadable).chmod(0o000)
    before = queue_file(read_only).read_bytes()
    first, second = _look(home, read_only, unreadable)
    assert first[:KEYS] == ["TriageScreen"] * KEYS
    shown = " ".join("\n".join(first[KEYS:]).split())
    assert f"read-only: {state_folder(read_only)} cannot be written" in shown
    assert "Seen" in shown
    assert queue_file(read_only).read_bytes() == before
    assert not archive_file(read_only).exists()
    shown = " ".join("\n".join(second[KEYS:]).split())
    assert "UNREADABLE" in shown
    assert "ermission denied" in shown
