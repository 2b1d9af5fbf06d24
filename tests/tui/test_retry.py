"""Retries from the monitor, of turns that really failed and of one cause with many turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.entry import is_about, is_open
from monitor.app import Monitor
from tests.answers import COMPLETE, QUESTION, every_phase_by_model, script, served_flow
from tests.servers.model_server import Connection, ModelServer, answer, status
from tests.tui.scene import until
from tests.tui.seen import problem, text, told, top
from unified_flow.phases.errors import PhaseError

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
SIZE = (220, 50)
TURNS = 4


@pytest.fixture
def failed(home: Path, docs: Path, model_server: ModelServer) -> ModelServer:
    """The server whose failure stopped some turns in the same way."""
    model_server.script = script(synthesis=status(500), planner=COMPLETE)

    async def ask() -> None:
        async with served_flow(home, model_server.url, docs) as flow:
            for number in range(TURNS):
                with pytest.raises(PhaseError):
                    await flow.process(f"session {number}", QUESTION)

    asyncio.run(ask())
    return model_server


@every_phase_by_model
async def test_all_alike_are_retried_and_resolved(
    queue: InterventionQueue, monitor: Make, failed: ModelServer
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        failed.script = script(planner=COMPLETE)
        await pilot.press("f", "j", "t")
        await until(pilot, lambda: f"All {TURNS} alike: one is tried first" in text(pilot))
        assert "Retry 1 intervention" in text(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: f"retried and resolved {TURNS}" in told(pilot))
        assert top(pilot) == "TriageScreen"
        assert not any(map(is_open, queue.entries()))
        assert all(entry["resolutions"][-1]["verified"] for entry in queue.entries())
        await pilot.press("2")
        await until(pilot, lambda: "after: the turn is answered" in text(pilot))


async def test_the_first_that_fails_again_spares_the_others(
    queue: InterventionQueue, monitor: Make, failed: ModelServer
) -> None:
    failed.script = script(synthesis=status(418), planner=COMPLETE)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("f", "j", "t")
        await until(pilot, lambda: "All 4 alike: one is tried" in text(pilot))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "passed 0, failed 1, skipped 3" in problem(pilot))
        assert "3 skipped: turn" in problem(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "now: " in text(pilot))
        assert "418" in text(pilot)
        assert all(map(is_open, queue.entries()))


@every_phase_by_model
async def test_the_phases_are_seen_as_they_run_and_the_rest_can_be_left(
    queue: InterventionQueue, monitor: Make, failed: ModelServer
) -> None:
    go_on = threading.Event()
    failed.script = script(synthesis=_after(go_on), planner=COMPLETE)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("f", "j", "t")
        await until(pilot, lambda: "one is tried first" in text(pilot))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "✓ ✓ ✓ ✓ · ▸ · ·  synthesis" in text(pilot))
        assert f"0 of {TURNS} turns" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "turns alike: " in text(pilot))
        go_on.set()
        await until(pilot, lambda: "passed 1, failed 0, skipped 3" in problem(pilot))
        assert "3 skipped: it was interrupted" in problem(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "retried and resolved 1" in told(pilot))
        assert sum(map(is_open, queue.entries())) == TURNS - 1


@every_phase_by_model
async def test_what_runs_when_one_stops_is_told_as_it_ends(
    queue: InterventionQueue, monitor: Make, failed: ModelServer
) -> None:
    """All but the first run at once: none of them is given up, and none is told as waiting."""
    go_on, good = threading.Event(), answer(script()["synthesis"])
    failed.script = script(synthesis=[good, *[_after(go_on)] * TURNS], planner=COMPLETE)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("f", "j", "t")
        await until(pilot, lambda: "one is tried first" in text(pilot))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: text(pilot).count("▸ · ·  synthesis") == TURNS - 1)
        await pilot.press("escape")
        go_on.set()
        await until(pilot, lambda: f"retried and resolved {TURNS}" in told(pilot))
    assert not any(map(is_open, queue.entries()))


def _after(go_on: threading.Event) -> Callable[[Connection], None]:
    def slow(connection: Connection) -> None:
        go_on.wait(30)
        answer(script()["synthesis"])(connection)

    return slow


async def test_what_nobody_needs_any_more_says_so(
    queue: InterventionQueue, monitor: Make, failed: ModelServer
) -> None:
    queue.supersede(
        {e["id"] for e in queue.entries() if is_about(e, 1)}, "turn 1 was abandoned by ada"
    )
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("f")
        await until(pilot, lambda: text(pilot).count("SUPS") == 1)
        await pilot.press("G")
        await until(pilot, lambda: "turn 1 was abandoned by ada" in text(pilot))


async def test_what_came_of_it_is_in_sight_on_a_small_terminal(
    queue: InterventionQueue, monitor: Make, failed: ModelServer
) -> None:
    failed.script = script(synthesis=status(418), planner=COMPLETE)
    async with monitor().run_test(size=(60, 20)) as pilot:
        await pilot.press("t", "enter")
        await until(pilot, lambda: "418" in text(pilot).partition("failed again")[2])
        await until(pilot, lambda: "Cancel" in text(pilot))
        await pilot.press("pageup")
        await until(pilot, lambda: "Retry 4 interventions" in text(pilot))
