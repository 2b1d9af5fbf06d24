"""What happened since a person looked last, and what must not be missed meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.home import archive_file, queue_file, state_folder
from interventions.times import to_text, utc_now
from monitor.app import Monitor
from monitor.core.looked import look_file, read_look
from monitor.core.model import TriageModel
from monitor.core.source import LiveSource
from tests.tui.scene import fill, put, until
from tests.tui.seen import rows, text, told, triage

pytestmark = pytest.mark.anyio
SIZE = (110, 24)


@pytest.fixture
def visit(home: Path) -> Callable[[str], Any]:
    def make(person: str = "ada") -> Any:
        source = LiveSource(InterventionQueue(home, lock_timeout_s=0.3))
        return Monitor(source, source.read(), look=look_file(home, person)).run_test(size=SIZE)

    return make


def _new(pilot: Pilot[Any]) -> set[str]:
    return set(triage(pilot).model.new)


async def test_a_visit_begins_where_the_last_one_ended(
    queue: InterventionQueue, visit: Callable[..., Any]
) -> None:
    old = utc_now() - timedelta(hours=2)
    first, second = (put(queue, created_at=old + timedelta(seconds=n)) for n in range(2))
    solved = put(queue, fingerprint="a" * 16)
    queue.resolve(solved, "restarted", by="carl")
    async with visit() as pilot:
        await until(pilot, lambda: rows(pilot).rows)
        assert "since you looked" not in text(pilot)
    queue.resolve(second, "rebuilt", by="bob")
    put(queue, fingerprint="a" * 16)
    fresh = put(queue, severity="critical")
    async with visit() as pilot:
        wanted = "2 new (1 critical), 1 came back, 1 closed by bob"
        await until(pilot, lambda: wanted in text(pilot))
        assert fresh in _new(pilot)
        assert first not in _new(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "since you looked" not in text(pilot))
    left = read_look(look_file(queue.home, "ada")).new
    async with visit() as pilot:
        assert _new(pilot) == left  # nobody looked at them
    async with visit("bob") as pilot:
        assert "since you looked" not in text(pilot)


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"at": 3, "new": []}', '{"at": "x", "new": 1}'])
async def test_what_a_hand_has_spoilt_is_a_first_visit(
    queue: InterventionQueue, visit: Callable[..., Any], kept: str
) -> None:
    fill(queue, 1)
    path = look_file(queue.home, "ada/../x")
    assert path.parent == state_folder(queue.home) / "looked"
    path.parent.mkdir()
    path.write_text(kept)
    async with visit("ada/../x") as pilot:
        assert len(rows(pilot).rows) == 1
    assert json.loads(path.read_text())["at"] <= to_text(utc_now())
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_critical_failure_inside_an_old_row_is_announced(
    queue: InterventionQueue, visit: Callable[..., Any]
) -> None:
    for number in range(5):
        put(queue, session_id="s", error_type=f"E{number}")
    async with visit() as pilot:
        rung: list[object] = []
        pilot.app.bell = lambda: rung.append(None)
        put(queue, session_id="s", error_type="DiskFull", severity="critical", fingerprint="9")
        await until(pilot, lambda: "critical: planner DiskFull" in told(pilot))
        assert len(rung) == 1
        put(queue, session_id="s", error_type="DiskFull", severity="critical", fingerprint="9")
        await until(pilot, lambda: "3" in [row.cells[3].text for row in rows(pilot).rows])
        assert len(rung) == 1


@pytest.mark.parametrize("with_file", [False, True])
async def test_a_queue_that_goes_with_all_its_logs_is_not_an_empty_one(
    queue: InterventionQueue, visit: Callable[..., Any], with_file: bool
) -> None:
    fill(queue, 3)
    async with visit() as pilot:
        await until(pilot, lambda: "3/50 open" in text(pilot))
        for path in state_folder(queue.home).iterdir():
            path.unlink()
        shutil.rmtree(queue.home / "logs")
        if with_file:
            queue_file(queue.home).write_text('{"version": 1, "interventions": []}')
        await until(pilot, lambda: "● gone · as last read" in text(pilot))
        assert len(rows(pilot).rows) == 3
        assert "healthy" not in text(pilot)


async def test_an_entry_that_leaves_for_the_archive_is_not_lost(
    queue: InterventionQueue, visit: Callable[..., Any]
) -> None:
    small = InterventionQueue(queue.home, max_size=2)
    one, _ = put(small), put(small)
    async with visit() as pilot:
        small.resolve(one, "done")
        put(small, error_type="Error02")
        await until(pilot, lambda: archive_file(queue.home).exists())
        await until(pilot, lambda: "Error02" in text(pilot))
        assert "● gone" not in text(pilot)


async def test_a_damaged_entry_is_told(queue: InterventionQueue, visit: Callable[..., Any]) -> None:
    fill(queue, 2)
    async with visit() as pilot:
        file = queue_file(queue.home)
        file.write_text(file.read_text().replace('"interventions": [', '"interventions": [7,', 1))
        await until(pilot, lambda: "1 of the entries cannot be read" in text(pilot))
        assert "● damaged" in text(pilot)
        assert "interventions doctor" in text(pilot)


async def test_the_header_shows_the_last_hour(
    queue: InterventionQueue, visit: Callable[..., Any]
) -> None:
    for _ in range(3):
        put(queue)
    async with visit() as pilot:
        await until(pilot, lambda: "3 in 1 h" in text(pilot))
        assert "█" in text(pilot)


def test_what_is_open_again_is_not_announced_as_a_critical_failure(
    queue: InterventionQueue, home: Path
) -> None:
    """Its announcement would take the place of what the undo said."""
    own = put(queue, severity="critical")
    source = LiveSource(queue)
    queue.resolve(own, "done")
    model = TriageModel(source.read())
    queue.undo(own, expected_version=queue.find(own)["version"])
    assert model.new_critical(source.read()) == []
    put(queue, severity="critical")
    assert len(model.new_critical(source.read())) == 1


def test_what_is_open_again_while_the_list_is_held_still_is_not_announced_either(
    queue: InterventionQueue, home: Path
) -> None:
    """It came, was resolved and was opened again elsewhere during one pause."""
    source = LiveSource(queue)
    model = TriageModel(source.read(), paused=True)
    own = put(queue, severity="critical")
    assert len(model.new_critical(source.read())) == 1
    model.update(source.read())
    queue.resolve(own, "done")
    model.update(source.read())
    queue.undo(own, expected_version=queue.find(own)["version"])
    assert model.new_critical(source.read()) == []
