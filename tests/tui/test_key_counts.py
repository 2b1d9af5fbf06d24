"""How many keys each job of a triage takes, from the list as it opens. The table of
architecture/monitor.md; `pytest tests/tui/test_key_counts.py -s` prints what is pressed.

What is typed into a note, a name or a file does not count; the key that ends it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.entry import is_open
from interventions.retry.contract import LiveTurn, RetryRequest, RetryResult
from interventions.times import utc_now
from monitor.app import Monitor
from tests.tui.scene import paste, put, turn, until
from tests.tui.seen import reading, text, told, top, triage

pytestmark = pytest.mark.anyio
NOTE = "TYPE"  # what is typed here does not count


@dataclass(frozen=True)
class Job:
    name: str
    most: int
    keys: tuple[str, ...]
    shows: str = ""


SEEN = (
    Job("worst failure", 0, (), "JSONDecodeError"),
    Job("its hint", 0, (), "ask the model for JSON alone"),
    Job("its evidence", 1, ("enter",), "robots.md:5"),
    Job("its input", 2, ("enter", "right_curly_bracket"), "topics, services"),
    Job("help", 1, ("question_mark",), "Close it as solved"),
    Job("the commands to go on with", 1, ("c",), "interventions resolve"),
    Job("failures over time", 1, ("5",), "Failures of the last day"),
)
CHANGES = (
    Job("resolve", 2, ("r", NOTE, "enter")),
    Job("resolve all of one cause", 3, ("r", NOTE, "enter")),
    Job("snooze", 2, ("s", "enter")),
    Job("assign", 2, ("a", NOTE, "enter")),
    Job("dismiss", 2, ("d", "y")),
)
RETRIES = (
    Job("retry", 2, ("t", "enter")),
    Job("retry all alike", 3, ("t", "ctrl+t")),
)


def test_no_job_takes_more_than_it_may() -> None:
    for job in (*SEEN, *CHANGES, *RETRIES):
        assert len([key for key in job.keys if key != NOTE]) <= job.most, job.name


@pytest.fixture
def worst(queue: InterventionQueue) -> str:
    now = utc_now()
    for number in range(8):
        put(queue, created_at=now - timedelta(minutes=9 + number))
    alike = {"error_type": "JSONDecodeError", "error_message": "Expecting value"}
    shown = {"severity": "critical", "phase": "planner"}
    context = {"turn": turn("planner"), "hint": "ask the model for JSON alone"}
    for number in range(2):
        moment = now - timedelta(minutes=2 + number)
        own = {"created_at": moment, "session_id": f"s{number}", "turn_id": number + 1}
        put(queue, **alike, **shown, context=context, **own)
    return "JSONDecodeError"


async def _press(pilot: Pilot[Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key == NOTE:
            await paste(pilot, "mended")
        else:
            await pilot.press(key)


async def test_what_is_seen(monitor: Callable[..., Monitor], worst: str) -> None:
    async with monitor().run_test(size=(120, 40)) as pilot:
        for job in SEEN:
            await until(pilot, lambda: worst in text(pilot))
            await _press(pilot, job.keys)
            await until(pilot, lambda job=job: job.shows in text(pilot))
            if job.keys:
                await pilot.press("escape" if job.keys != ("5",) else "1")
            await until(pilot, lambda: top(pilot) == "TriageScreen" and not reading(pilot))


def _is_done(queue: InterventionQueue, job: Job) -> bool:
    alike = [e for e in queue.entries() if e["error_type"] == "JSONDecodeError"]
    fields = {"snooze": "snoozed_until", "assign": "owner", "dismiss": "dismissed_at"}
    field = fields.get(job.name, "resolved_at")
    changed = [bool(entry[field] or entry["snoozed_until_occurrences"]) for entry in alike]  # type: ignore[literal-required]
    return all(changed)


async def test_what_is_changed_and_undone_with_one_key(
    queue: InterventionQueue, monitor: Callable[..., Monitor], worst: str
) -> None:
    async with monitor().run_test(size=(120, 40)) as pilot:
        for job in CHANGES:
            await until(pilot, lambda: worst in text(pilot))
            await _press(pilot, job.keys)
            await until(pilot, lambda job=job: _is_done(queue, job))
            await until(pilot, lambda: top(pilot) == "TriageScreen")
            await pilot.press("z")
            await until(pilot, lambda job=job: not _is_done(queue, job))
            await until(pilot, lambda: "undid: " in told(pilot))


class _Resumer:
    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        ids = [str(request.intervention_id)]
        InterventionQueue(home).close_retried(ids, request.note, outcome="answered")
        return RetryResult(request.turn_id, "answered")


@pytest.mark.parametrize("job", RETRIES, ids=lambda job: job.name)
async def test_what_is_retried(
    queue: InterventionQueue,
    monitor: Callable[..., Monitor],
    monkeypatch: pytest.MonkeyPatch,
    worst: str,
    job: Job,
) -> None:
    point = EntryPoint("test", f"{__name__}:_Resumer", "interventions.resumers")
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: EntryPoints([point] if group == point.group else []),
    )
    async with monitor().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: worst in text(pilot))
        await pilot.press(job.keys[0])
        await until(pilot, lambda: "All 2 alike: one is tried first" in text(pilot))
        await pilot.press(*job.keys[1:])
        await until(pilot, lambda: top(pilot) == "TriageScreen" and _is_done(queue, job))


async def test_several_changes_are_undone_with_a_key_each_and_one_more(
    queue: InterventionQueue, monitor: Callable[..., Monitor], worst: str
) -> None:
    async with monitor().run_test(size=(120, 40)) as pilot:
        for number in range(3):
            await pilot.press("r")
            await paste(pilot, f"note {number}")
            await pilot.press("enter")
            await until(pilot, lambda: top(pilot) == "TriageScreen")
        assert sum(is_open(entry) for entry in queue.entries()) == 6
        for undone in (8 - 1, 8):
            await pilot.press("z")
            await until(pilot, lambda n=undone: sum(map(is_open, queue.entries())) == n)
        await pilot.press("z")
        await until(pilot, lambda: top(pilot) == "UndoForm")
        await pilot.press("y")
        await until(pilot, lambda: all(map(is_open, queue.entries())))


async def test_the_source_line_is_one_key_away(
    queue: InterventionQueue,
    monitor: Callable[..., Monitor],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    source = tmp_path / "plan.py"
    source.write_text("\n" * 50)
    put(queue, location=f"{source}:41", traceback=f'  File "{source}", line 41, in read_plan\n')
    async with monitor().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "it broke" in text(pilot))
        await pilot.press("e")
        await until(pilot, lambda: "no editor can be opened from here" in told(pilot))


class _Reader:
    def latest(self, home: Path, limit: int) -> list[LiveTurn]:
        return []

    def changes(self, home: Path, turn_id: int) -> list[str]:
        return ["configuration: model, base_url"]


async def test_what_changed_since_is_seen_after_one_key(
    monitor: Callable[..., Monitor], worst: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("test", f"{__name__}:_Reader", "interventions.turns")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([point]))
    async with monitor().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: worst in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "configuration: model, base_url" in text(pilot))


async def test_to_the_turn_and_back_is_a_key_each(
    queue: InterventionQueue, monitor: Callable[..., Monitor]
) -> None:
    put(queue, turn_id=7)
    async with monitor().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "it broke" in text(pilot))
        await pilot.press("T")
        await until(pilot, lambda: triage(pilot).tab.name == "turns")
        await pilot.press("escape")
        await until(pilot, lambda: triage(pilot).tab.name == "open" and not reading(pilot))


async def test_copying_a_command_takes_two_and_exporting_two(
    queue: InterventionQueue,
    monitor: Callable[..., Monitor],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    put(queue)
    copied: list[str] = []
    async with monitor().run_test(size=(120, 40)) as pilot:
        monkeypatch.setattr(pilot.app, "copy_to_clipboard", copied.append)
        await until(pilot, lambda: "it broke" in text(pilot))
        await pilot.press("c", "enter")
        await until(pilot, lambda: copied)
        assert copied[0].startswith("interventions ")
        await pilot.press("X", "enter")
        await until(pilot, lambda: list(tmp_path.glob("intervention-*.json")))
