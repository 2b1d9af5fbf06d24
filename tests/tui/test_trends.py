"""What failed over a window of time, as a person sees it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from interventions import InterventionQueue
from interventions.health import Window, trends
from interventions.storage.store import ClosedFigures, FailureCount
from monitor.app import Monitor
from monitor.widgets.trends_view import chart
from tests.tui.scene import NOW, put, until
from tests.tui.seen import rows, text

NONE_CLOSED = ClosedFigures([], 0, 0, 0)


@pytest.mark.anyio
async def test_a_window_is_chosen_and_its_causes_are_listed(
    queue: InterventionQueue, monitor: Callable[..., Monitor]
) -> None:
    alike = {"error_type": "TimeoutError", "error_message": "no reply", "phase": "synthesis"}
    for hours, session in ((0.5, "a"), (2, "b"), (50, "c")):
        put(queue, created_at=NOW - timedelta(hours=hours), session_id=session, **alike)
    put(queue, created_at=NOW - timedelta(hours=3), error_type="KeyError", severity="critical")
    async with monitor(clock=lambda: NOW).run_test(size=(120, 40)) as pilot:
        await pilot.press("5")
        await until(pilot, lambda: "3 in all:  ■ 1 critical  ■ 2 high" in text(pilot))
        assert "Failures of the last day, 1h a bar" in text(pilot)
        assert [row.cells[0].text for row in rows(pilot).rows] == ["2", "1"]
        assert "TimeoutError: no reply" in text(pilot)
        assert "synthesis          ████████████████████████ 2" in text(pilot)
        await pilot.press("W")
        await until(pilot, lambda: "4 in all" in text(pilot))
        await pilot.press("slash", *"key", "enter")
        await until(
            pilot, lambda: [row.cells[3].text for row in rows(pilot).rows] == ["KeyError: it broke"]
        )
        await pilot.press("escape", "W", "W")
        await until(pilot, lambda: "Failures of the last hour" in text(pilot))
        put(queue, created_at=NOW, error_type="OSError", error_message="came meanwhile")
        await until(pilot, lambda: "OSError: came meanwhile" in text(pilot))


def _columns(counts: list[FailureCount], height: int) -> list[str]:
    drawn = chart(trends(counts, NONE_CLOSED, [], Window.DAY, NOW), 54, height).plain.split("\n")
    bars = [line[6:].ljust(48) for line in drawn[2:-2]]
    return ["".join(column).strip() for column in zip(*bars, strict=True)][::2]


def _failures(step: int, severity: int, number: int) -> FailureCount:
    return FailureCount(step, severity, "planner", "f", "accepted", number)


def test_a_bar_is_as_high_as_its_number() -> None:
    found = _columns([_failures(0, 1, 8), _failures(1, 1, 4), _failures(23, 2, 1)], 12)
    assert found[:3] == ["████████", "████", ""]
    assert found[23] == "█"


def test_few_among_many_are_seen() -> None:
    found = _columns([_failures(0, 1, 1000), _failures(1, 0, 1)], 12)
    assert found[1] == "▁"


@pytest.mark.parametrize("window", Window)
@pytest.mark.parametrize("size", [(20, 8), (59, 8), (110, 20)])
def test_it_is_as_high_and_no_wider_than_its_room(window: Window, size: tuple[int, int]) -> None:
    lines = chart(trends([], NONE_CLOSED, [], window, NOW), *size).plain.split("\n")
    assert len(lines) == size[1]
