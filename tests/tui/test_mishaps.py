"""What goes wrong while somebody acts: it is told, nothing is lost, and the monitor goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from interventions import InterventionQueue
from interventions.home import lock_file, queue_file
from interventions.retry.contract import RetryRequest, RetryResult
from monitor.app import Monitor
from monitor.core.app_state import Change
from monitor.forms.form import Form
from monitor.forms.transitions import ResolveForm
from tests.tui.other_process import OtherProcess
from tests.tui.scene import fill, paste, put, until
from tests.tui.seen import app, current, problem, text, told, top, triage

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
SIZE = (100, 30)
MARKUP = "int_20260101_000000_[/b][@click=app.quit]x"


def _form(pilot: Pilot[Any]) -> Form:
    assert isinstance(pilot.app.screen, Form)
    return pilot.app.screen


@pytest.mark.parametrize("key", ["r", "s", "d", "a"])
async def test_an_id_is_no_markup(queue: InterventionQueue, monitor: Make, key: str) -> None:
    put(queue, id=MARKUP)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: isinstance(pilot.app.screen, Form))
        await until(pilot, lambda: "[/b][@click=app.quit]x" in text(pilot))


async def test_a_mistake_of_ours_ends_the_monitor_and_is_called_no_refusal(
    queue: InterventionQueue, monitor: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(form: ResolveForm) -> Change:
        return lambda entry: entry["no such field"]

    async def resolve(running: Monitor) -> None:
        async with running.run_test(size=SIZE) as pilot:
            await pilot.press("r", "enter")
            await until(pilot, lambda: running.return_code == 1)

    monkeypatch.setattr(ResolveForm, "change", mistaken)
    put(queue)
    with pytest.raises(WorkerFailed, match="no such field"):
        await resolve(monitor())


async def test_escape_sequences_are_shown_and_not_obeyed(
    queue: InterventionQueue, monitor: Make
) -> None:
    escape = "\x1b]2;title\x1b\\"
    put(
        queue,
        error_type=f"Boom{escape}",
        owner=escape,
        tool=escape,
        location=f"/none{escape}:5",
    )
    async with monitor().run_test(size=(140, 50), notifications=True) as pilot:
        for key in ("e", "y", "r", "escape", "d", "y"):
            await pilot.press(key)
            await pilot.pause()
            assert "\x1b" not in text(pilot) + told(pilot)
        await until(pilot, lambda: "dismissed 1" in told(pilot))
        assert "\x1b" not in text(pilot) + told(pilot)


async def test_undo_of_a_queue_that_cannot_be_read(
    queue: InterventionQueue, monitor: Make, home: Path
) -> None:
    fill(queue, 2)
    async with monitor().run_test(size=SIZE) as pilot:
        queue_file(home).write_text("{")
        await until(pilot, lambda: "does not parse" in text(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "does not parse" in told(pilot))
        assert top(pilot) == "TriageScreen"


async def test_an_undo_that_met_a_lock_can_be_tried_again(
    queue: InterventionQueue, monitor: Make, home: Path
) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("r")
        await paste(pilot, "mended")
        await pilot.press("enter")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        with FileLock(lock_file(home)):
            await pilot.press("z")
            await until(pilot, lambda: "held" in told(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "undid" in told(pilot))
        assert queue.find(first)["resolved_at"] is None
        assert app(pilot).state.changes == []


async def test_many_that_meet_a_lock_wait_for_it_once(
    queue: InterventionQueue, monitor: Make, home: Path
) -> None:
    fill(queue, 8)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+a", "d")
        with FileLock(lock_file(home)):
            await pilot.press("y")
            await until(pilot, lambda: "not tried: " in problem(pilot))
        assert len(_form(pilot).entries) == 8
        await pilot.press("y")
        await until(pilot, lambda: "dismissed 8" in told(pilot))


async def test_escape_stops_what_works_and_twice_leaves_it(
    queue: InterventionQueue, monitor: Make, home: Path
) -> None:
    ids = fill(queue, 3)
    patient = Monitor(*_patient(home))
    async with patient.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+a", "d")
        with FileLock(lock_file(home)):
            await pilot.press("y", "escape")
            await until(pilot, lambda: "no further one is begun" in problem(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: top(pilot) == "TriageScreen")
        await until(pilot, lambda: "not tried: " in told(pilot))
        closed = [one for one in ids if queue.find(one)["dismissed_at"]]
        assert len(closed) == 1
        await pilot.press("z")
        await until(pilot, lambda: "undid" in told(pilot))
        assert queue.find(closed[0])["dismissed_at"] is None


def _patient(home: Path) -> tuple[Any, Any]:
    from monitor.core.source import LiveSource

    source = LiveSource(InterventionQueue(home, lock_timeout_s=30))
    return source, source.read()


async def test_what_somebody_else_changed_can_be_closed_all_the_same(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    first, second = put(queue), put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+a", "r")
        await until(pilot, lambda: len(_form(pilot).entries) == 2)
        queue.assign(first, "bob", by="bob")
        await paste(pilot, "my note")
        await pilot.press("enter")
        await until(pilot, lambda: "assign by bob" in problem(pilot))
        assert "it is open now" in problem(pilot)
        assert len(_form(pilot).entries) == 1
        await pilot.press("ctrl+o")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        await until(pilot, lambda: "resolved 2" in told(pilot))
        assert queue.find(second)["resolution"] == "my note"
        entry = queue.find(first)
        assert (entry["resolution"], entry["owner"]) == ("my note", "bob")


async def test_what_somebody_else_closed_is_told_with_the_note(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    same = {"error_type": "Same", "fingerprint": "f" * 16}
    ids = [put(queue, session_id=f"s{number}", **same) for number in range(3)]
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: len(_form(pilot).entries) == 3)
        other.resolve(home, ids[0], "bob restarted it")
        await paste(pilot, "my note")
        await pilot.press("enter")
        await until(pilot, lambda: "bob restarted it" in problem(pilot))
        shown = str(pilot.app.screen.query_one("#form-entries").content)  # type: ignore[attr-defined]
        assert len(shown.splitlines()) == 2  # what it is, and where
        await pilot.press("ctrl+o", "escape")
        assert queue.find(ids[0])["resolution"] == "bob restarted it"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("s", lambda queue, first: queue.assign(first, "bob")),
        ("d", lambda queue, first: queue.assign(first, "bob")),
        ("a", lambda queue, first: queue.assign(first, "bob")),
    ],
)
async def test_no_change_goes_over_what_somebody_else_did(
    queue: InterventionQueue, monitor: Make, key: str, change: Callable[..., object]
) -> None:
    first = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press(key)
        change(queue, first)
        before = queue.find(first)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "is version 2, not 1" in problem(pilot))
        assert queue.find(first) == before


async def test_no_reopen_goes_over_what_somebody_else_did(
    queue: InterventionQueue, monitor: Make
) -> None:
    first = put(queue)
    queue.resolve(first, "done")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: current(pilot) == first)
        await pilot.press("o")
        queue.assign(first, "bob")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "is version 3, not 2" in problem(pilot))
        assert queue.find(first)["resolved_at"]


@pytest.mark.parametrize("typed", ["999999w", "9999-12-31T23:59:59-14:00"])
async def test_a_snooze_beyond_the_calendar(
    queue: InterventionQueue, monitor: Make, typed: str
) -> None:
    put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("s")
        pilot.app.screen.query_one("#typed").value = typed  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: problem(pilot) not in ("", "working ..."))
        assert "9999" in problem(pilot)


async def test_with_marks_undo_asks_about_the_entry_under_the_cursor(
    queue: InterventionQueue, monitor: Make
) -> None:
    first, second = put(queue, severity="critical"), put(queue)
    for one in (first, second):
        queue.assign(one, "bob", by="bob")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("space")
        await until(pilot, lambda: current(pilot) == second)
        await pilot.press("z")
        await until(pilot, lambda: top(pilot) == "UndoForm")
        assert [entry["id"] for entry in _form(pilot).entries] == [second]


@pytest.mark.parametrize("moves", [("j",), ("space",)])
async def test_retry_is_of_what_the_cursor_stood_on(
    queue: InterventionQueue, monitor: Make, moves: tuple[str, ...]
) -> None:
    first = put(queue, severity="critical", turn_id=1)
    put(queue, turn_id=2)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t", *moves)
        await until(pilot, lambda: top(pilot) == "RetryForm")
        assert [entry["id"] for entry in _form(pilot).entries] == [first]


class Slow:
    """A resumer whose turn runs until it is let go, and then fails in a later phase."""

    gate = threading.Event()

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        assert self.gate.wait(30)
        queue = InterventionQueue(home)
        queue.close_retried([str(request.intervention_id)], "passed", outcome="failed")
        return RetryResult(
            request.turn_id,
            "failed",
            phase="validation",
            message="boom later",
            intervention_id="int_1_bbbbbb",
        )


class Broken:
    """A reader of turns that fails whenever it is asked."""

    def latest(self, home: Path, limit: int) -> list[Any]:
        raise NotADirectoryError("shared_state/turns")

    def turn(self, home: Path, turn_id: int) -> None:
        raise NotADirectoryError("shared_state/turns")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lets the turn go on."""
    Slow.gate.clear()
    objects = {"interventions.resumers": Slow, "interventions.turns": Broken}

    def found(*, group: str) -> EntryPoints:
        return EntryPoints([EntryPoint("mine", f"{__name__}:{group}", group)])

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", lambda self: objects[self.group])
    yield Slow.gate
    Slow.gate.set()


class Unmade:
    def __init__(self) -> None:
        raise RuntimeError("no model here")


async def test_a_resumer_that_cannot_be_made_costs_its_entry_alone(
    queue: InterventionQueue,
    monitor: Make,
    slow: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EntryPoint, "load", lambda self: Unmade)
    put(queue, turn_id=1)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t", "enter")
        await until(pilot, lambda: "cannot be loaded: no model here" in problem(pilot))
        assert top(pilot) == "RetryForm"


async def test_a_turn_that_failed_later_is_told(
    queue: InterventionQueue, monitor: Make, slow: threading.Event
) -> None:
    first = put(queue, turn_id=1)
    slow.set()
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t", "enter")
        await until(
            pilot, lambda: "failed in validation (intervention bbbbbb): boom later" in told(pilot)
        )
        assert "retried and resolved 1" in told(pilot)
        assert queue.find(first)["resolved_at"]


async def test_a_retry_that_hangs_can_be_left(
    queue: InterventionQueue, monitor: Make, slow: threading.Event
) -> None:
    put(queue, turn_id=1, severity="critical")
    second = put(queue, turn_id=2)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("t", "enter")
        await until(pilot, lambda: "working" in problem(pilot))
        await until(pilot, lambda: "the phases are not known" in text(pilot))
        await pilot.press("escape", "escape")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        await pilot.press("j")
        await until(pilot, lambda: current(pilot) == second)
        slow.set()
        await until(pilot, lambda: "boom later" in told(pilot))
        assert top(pilot) == "TriageScreen"


async def test_a_reader_of_turns_that_fails_costs_its_tab_alone(
    queue: InterventionQueue, monitor: Make, slow: threading.Event
) -> None:
    put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: "what reads turns failed: NotADirectoryError" in text(pilot))
        await pilot.press("1")
        await until(pilot, lambda: len(triage(pilot).rows.rows) == 1)
