"""Resolve, retry, snooze, dismiss, assign, reopen and undo from the monitor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from textual.pilot import Pilot
from textual.widgets import Button

from interventions import InterventionQueue
from interventions.entry import is_snoozed, short_id
from interventions.home import lock_file
from interventions.retry import contract
from interventions.retry.contract import RetryRequest, RetryResult
from interventions.times import from_text, utc_now
from monitor.app import Monitor
from monitor.core.app_state import InputError
from monitor.forms.transitions import parse_snooze
from tests.tui.other_process import OtherProcess
from tests.tui.scene import fill, paste, put, until
from tests.tui.scene import turn as turn_context
from tests.tui.seen import current, problem, text, told, top

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
SIZE = (100, 30)


async def _back(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: top(pilot) == "TriageScreen")
    await pilot.pause()


async def test_resolve_needs_a_note_and_can_be_undone(
    queue: InterventionQueue, monitor: Make
) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("r", "enter")
        await until(pilot, lambda: "needs a note" in problem(pilot))
        await paste(pilot, "mended the planner")
        await pilot.press("enter")
        await _back(pilot)
        entry = queue.find(first)
        assert entry["resolution"] == "mended the planner"
        assert queue.journal(first)[-1]["via"] == "monitor"
        assert "NO OPEN INTERVENTIONS" in text(pilot)
        await pilot.press("z")
        await until(pilot, lambda: "1/50 open" in text(pilot))
        assert queue.find(first)["resolved_at"] is None


@pytest.fixture
def holder(queue: InterventionQueue) -> str:
    """The fifth of its session, which took two other failures, and a turn of its own failure."""
    for number in range(1, 6):
        held = put(queue, session_id="s", turn_id=number, error_type=f"E{number}")
    put(queue, session_id="s", turn_id=6, error_type="E5")
    put(queue, session_id="s", turn_id=7, severity="critical", error_message="disk full")
    put(queue, session_id="s", turn_id=8, error_message="401 Unauthorized", error_type="Http")
    return held


@pytest.mark.usefixtures("holder")
@pytest.mark.parametrize("key", ["r", "d", "t"])
async def test_a_form_that_closes_a_row_names_what_else_is_in_it(monitor: Make, key: str) -> None:
    async with monitor().run_test(size=(120, 36)) as pilot:
        assert "NEW E5" in text(pilot)
        await pilot.press("g", key)
        await until(pilot, lambda: "closes 2 other failures, too:" in text(pilot))
        assert "crit 1 x planner Error05: disk full" in text(pilot)
        assert "high 1 x planner Http: 401 Unauthorized" in text(pilot)


async def test_a_retry_of_all_takes_others_only_if_asked(
    queue: InterventionQueue, monitor: Make, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []

    class Resumer:
        def retry(self, home: Path, request: RetryRequest) -> RetryResult:
            turns.append(request.turn_id)
            return RetryResult(request.turn_id, "answered")

    monkeypatch.setattr(contract, "find_resumer", Resumer)
    async with monitor().run_test(size=(120, 36)) as pilot:
        await pilot.press("g", "t")
        await until(pilot, lambda: "All 2 alike" in text(pilot))
        await until(pilot, lambda: "All 4, others too" in text(pilot))
        warning = "2 failed with another failure: this may be no fix for it"
        await until(pilot, lambda: warning in text(pilot))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "passed 2" in problem(pilot))
        assert sorted(turns) == [5, 6]
    turns.clear()
    async with monitor().run_test(size=(120, 36)) as pilot:
        await pilot.press("g", "t")
        await until(pilot, lambda: "All 2 alike" in text(pilot))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "passed 4" in problem(pilot))
        assert (turns[0], sorted(turns)) == (5, [5, 6, 7, 8])


async def test_a_regression_shows_the_earlier_note(queue: InterventionQueue, monitor: Make) -> None:
    same = {"fingerprint": "a" * 16, "error_type": "Again"}
    queue.resolve(put(queue, **same), "restarted the index")
    put(queue, session_id="later", **same)
    async with monitor().run_test(size=SIZE) as pilot:
        assert "REGR" in text(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "resolved before: restarted the index" in text(pilot))
        await pilot.press("escape", "enter")
        await until(pilot, lambda: "Known fixes" in text(pilot))


async def test_a_question_that_is_resolved_has_not_answered_its_turn(
    queue: InterventionQueue, monitor: Make
) -> None:
    asked = put(queue, type="escalation", error_message="which colour?")
    async with monitor().run_test(size=(60, 20)) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "its turn does not go on by this" in text(pilot))
        await paste(pilot, "blue")
        await pilot.press("enter")
        await _back(pilot)
        await pilot.press("2")
        # Also where there is little room, what is closed has a name for the commands.
        await until(pilot, lambda: "ENTRY" in text(pilot) and short_id(asked) in text(pilot))


async def test_dismiss_is_never_confirmed_by_the_key_that_opened_it(
    queue: InterventionQueue, monitor: Make
) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("d", "d", "d")
        await until(pilot, lambda: top(pilot) == "DismissForm")
        focused = pilot.app.focused
        assert isinstance(focused, Button)
        assert focused.id == "cancel"
        await pilot.press("enter")
        await _back(pilot)
        assert queue.find(first)["dismissed_at"] is None
        await pilot.press("d", "y")
        await _back(pilot)
        assert queue.find(first)["dismissed_at"]


async def test_snooze(queue: InterventionQueue, monitor: Make) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("s", "ctrl+u")
        await paste(pilot, "soon")
        await pilot.press("enter")
        await until(pilot, lambda: "is neither a while" in problem(pilot))
        await pilot.press("ctrl+u")
        await paste(pilot, "2020-01-31T09:00Z")
        await pilot.press("enter")
        await until(pilot, lambda: "is not in the future" in problem(pilot))
        await pilot.press("ctrl+u")
        await paste(pilot, "x10")
        await pilot.press("enter")
        await _back(pilot)
        assert queue.find(first)["snoozed_until_occurrences"] == 11
        await until(pilot, lambda: "SNZD" in text(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "SNZD" not in text(pilot))
        await pilot.press("s", "enter")
        await _back(pilot)
        entry = queue.find(first)
        assert is_snoozed(entry, utc_now())
        assert from_text(entry["snoozed_until"]) - utc_now() > timedelta(hours=3, minutes=59)


def test_how_long_a_snooze_lasts() -> None:
    assert parse_snooze("1h30m") == {"duration": timedelta(hours=1, minutes=30)}
    assert parse_snooze("x3") == parse_snooze("3x") == {"until_n_more": 3}
    assert parse_snooze("2026-01-31T09:00Z") == {"until": from_text("2026-01-31T09:00Z")}
    with pytest.raises(InputError):
        parse_snooze("")


async def test_assign(queue: InterventionQueue, monitor: Make) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("a", "ctrl+u")
        await paste(pilot, "ada")
        await pilot.press("enter")
        await _back(pilot)
        assert queue.find(first)["owner"] == "ada"
        await until(pilot, lambda: "@ada" in text(pilot))


async def test_reopen_from_the_history(queue: InterventionQueue, monitor: Make) -> None:
    first = put(queue)
    queue.resolve(first, "too early")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "too early" in text(pilot))
        await pilot.press("r")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        await pilot.press("o", "y")
        await _back(pilot)
        assert queue.find(first)["resolved_at"] is None
        await until(pilot, lambda: "NO HISTORY" in text(pilot))


async def test_undo_of_what_somebody_else_did_asks_first(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    first = put(queue)
    put(queue)
    other.resolve(home, first, "bob's")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("z")
        await until(pilot, lambda: "never was" in told(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "bob's" in text(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "resolve by bob" in text(pilot))
        await pilot.press("y")
        await _back(pilot)
        assert queue.find(first)["resolved_at"] is None


async def test_undo_of_what_was_changed_since_is_refused(
    queue: InterventionQueue, monitor: Make
) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("r")
        await paste(pilot, "mine")
        await pilot.press("enter")
        await _back(pilot)
        queue.reopen(first, by="bob")
        await pilot.press("z")
        await until(pilot, lambda: "reopen by bob" in told(pilot))
        assert queue.find(first)["resolved_at"] is None


async def test_undo_in_a_form_is_refused_when_somebody_was_first(
    queue: InterventionQueue, monitor: Make
) -> None:
    first = put(queue)
    queue.assign(first, "ada", by="ada")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("z")
        await until(pilot, lambda: "assign by ada" in text(pilot))
        queue.assign(first, "bob", by="bob")
        await pilot.press("y")
        await until(pilot, lambda: "assign by bob" in problem(pilot))
        assert queue.find(first)["owner"] == "bob"


async def test_in_bulk_a_refusal_does_not_stop_the_others(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    ids = fill(queue, 3)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+a", "r")
        await until(pilot, lambda: "Resolve 3 interventions" in text(pilot))
        other.resolve(home, ids[1], "bob's")
        await paste(pilot, "ours")
        await pilot.press("enter")
        await until(pilot, lambda: "resolved 2" in problem(pilot))
        assert "resolve by bob" in problem(pilot)
        await pilot.press("escape")
        await _back(pilot)
        await until(pilot, lambda: "resolved 2" in told(pilot))
        assert [queue.find(i)["resolution"] for i in ids] == ["ours", "bob's", "ours"]


async def test_a_form_about_many_fits_a_small_terminal(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 13)
    async with monitor().run_test(size=(60, 20)) as pilot:
        await pilot.press("ctrl+a", "r")
        await until(pilot, lambda: top(pilot) == "ResolveForm")
        await until(pilot, lambda: "Cancel" in text(pilot))
        assert "Resolve 13 interventions" in text(pilot)
        assert "what you mended" in text(pilot)
        assert pilot.app.screen.query_one("#form").max_scroll_y == 0


async def test_a_lock_that_is_held_is_told_and_can_be_waited_for(
    queue: InterventionQueue, monitor: Make, home: Path
) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("r")
        await paste(pilot, "later")
        with FileLock(lock_file(home)):
            await pilot.press("enter")
            await until(pilot, lambda: "held by somebody else" in problem(pilot))
        await pilot.press("enter")
        await _back(pilot)
        assert queue.find(first)["resolution"] == "later"


class Resumer:
    """Continues turn 1 and no other; records what it was asked."""

    asked: list[Any] = []  # noqa: RUF012

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        self.asked.append((request.turn_id, request.intervention_id))
        if request.turn_id == 1:
            return RetryResult(1, "answered")
        raise RuntimeError("still broken")


class Reader:
    def latest(self, home: Path, limit: int) -> list[contract.LiveTurn]:
        return [
            {
                "turn_id": 1,
                "status": "running",
                "question": "why?",
                "started_at": "2026-01-01T00:00:00Z",
                "ribbon": turn_context("planner")["ribbon"],
                "doing": "model rules",
            }
        ]

    def turn(self, home: Path, turn_id: int) -> contract.LiveTurn | None:
        return self.latest(home, 1)[0]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Entry points as an installed program registers them."""
    points = [
        EntryPoint("mine", f"{__name__}:Resumer", "interventions.resumers"),
        EntryPoint("mine", f"{__name__}:Reader", contract.TURNS_GROUP),
    ]

    def found(*, group: str) -> EntryPoints:
        return EntryPoints(point for point in points if point.group == group)

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.attr])
    Resumer.asked.clear()
    return Resumer.asked


async def test_retry_resolves_only_what_went_through(
    queue: InterventionQueue, monitor: Make, registered: list[Any]
) -> None:
    works = put(queue, turn_id=1, severity="critical")
    broken = put(queue, turn_id=2)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: top(pilot) == "RetryForm")
        await pilot.press("enter")
        await _back(pilot)
        assert queue.find(works)["resolution"] == "the retry went through"
        assert current(pilot) == broken
        await pilot.press("t")
        await until(pilot, lambda: top(pilot) == "RetryForm")
        await pilot.press("enter")
        await until(pilot, lambda: "still broken" in problem(pilot))
        assert "✓ ✓ ✓ ✗ · · · ·" in text(pilot)
        await pilot.press("escape")
        assert queue.find(broken)["resolved_at"] is None
        assert registered == [(1, works), (2, broken)]


async def test_live_turns_come_through_the_entry_point(
    queue: InterventionQueue, monitor: Make, registered: list[Any]
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: "✓ ✓ ✓ ✗ · · · ·" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "now: model rules" in text(pilot))
        assert registered == []


async def test_live_turns_say_when_nothing_can_show_them(
    monitor: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints())
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: "interventions.turns" in text(pilot))


async def test_retry_says_when_nothing_can(
    queue: InterventionQueue, monitor: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue, turn_id=1)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints())
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: "nothing that is installed can continue" in told(pilot))
        assert top(pilot) == "TriageScreen"
