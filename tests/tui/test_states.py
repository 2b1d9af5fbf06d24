"""Every state in which there is no list says what is the matter and what to do."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.errors import QueueError
from interventions.home import emergency_log, error_log, queue_file, state_folder
from interventions.times import utc_now
from interventions.view.description import as_json
from monitor.app import Monitor
from monitor.core.source import BundleSource
from tests.tui.other_process import OtherProcess
from tests.tui.scene import fill, put, until
from tests.tui.seen import reading, rows, text, top

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
SIZE = (100, 24)


async def test_first_run(monitor: Make) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        assert "FIRST RUN" in text(pilot)
        assert "unified-flow ask" in text(pilot)
        await pilot.press("r", "d", "t", "space", "ctrl+a", "y", "Y", "e", "enter", "G", "n", "O")
        await until(pilot, lambda: top(pilot) == "TriageScreen")


async def test_empty(queue: InterventionQueue, monitor: Make) -> None:
    queue.resolve(put(queue), "done")
    async with monitor().run_test(size=SIZE) as pilot:
        assert "NO OPEN INTERVENTIONS" in text(pilot)
        assert "press 2" in text(pilot)


async def test_corrupt_keeps_what_was_last_read(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 3)
    good = queue_file(queue.home).read_bytes()
    async with monitor().run_test(size=SIZE) as pilot:
        queue_file(queue.home).write_text('{"interventions": [')
        await until(pilot, lambda: "does not parse" in text(pilot))
        assert "interventions doctor" in text(pilot)
        assert len(rows(pilot).rows) == 3
        queue_file(queue.home).write_bytes(good)
        await until(pilot, lambda: "does not parse" not in text(pilot))


async def test_a_filter_that_fits_nothing_says_so_before_anything_ever_failed(
    monitor: Make, home: Path
) -> None:
    log = error_log(home, utc_now().date())
    log.parent.mkdir(parents=True)
    log.write_text('{"error_message": "not acknowledged"}\n')
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "not acknowledged" in text(pilot))
        assert "no failure was ever put" not in text(pilot)
        await pilot.press("slash", *"nosuch", "enter")
        await until(pilot, lambda: "NOTHING MATCHES" in text(pilot))
        assert "FIRST RUN" not in text(pilot)


async def test_what_to_do_about_it_is_whole_on_a_small_terminal(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 3)
    async with monitor().run_test(size=(60, 20)) as pilot:
        queue_file(queue.home).write_text('{"interventions": [')
        await until(pilot, lambda: "does not parse" in re.sub(r"\s+", " ", text(pilot)))
        whole = re.sub(r"\s", "", text(pilot))
        assert f"interventionsdoctor--home{queue.home}`:itrebuildsthequeue" in whole
        assert "● healthy" not in text(pilot)


async def test_a_time_at_the_end_of_the_calendar_is_a_row(
    queue: InterventionQueue, monitor: Make
) -> None:
    put(queue)
    file = queue_file(queue.home)
    at = queue.entries()[0]["created_at"]
    file.write_text(file.read_text().replace(at, "9999-12-31T23:59:59Z"))
    async with monitor().run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(rows(pilot).rows) == 1)
        assert pilot.app.return_code is None


async def test_corrupt_from_the_start_and_set_aside(
    queue: InterventionQueue, monitor: Make
) -> None:
    put(queue)
    queue_file(queue.home).write_text("{")
    async with monitor().run_test(size=SIZE) as pilot:
        assert "CORRUPT" in text(pilot)
        put_aside = queue_file(queue.home).with_name("intervention_queue.corrupt-20260101.json")
        queue_file(queue.home).rename(put_aside)
        await until(pilot, lambda: "was moved to" in text(pilot))


async def test_the_folder_vanishes_and_comes_back(
    queue: InterventionQueue, monitor: Make, tmp_path: Path
) -> None:
    fill(queue, 2)
    async with monitor().run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "2/50 open" in text(pilot))
        folder = state_folder(queue.home)
        shutil.move(folder, tmp_path / "away")
        await until(pilot, lambda: "gone" in text(pilot) and "--home" in text(pilot))
        shutil.move(tmp_path / "away", folder)
        await until(pilot, lambda: "gone" not in text(pilot))


async def test_unreadable(queue: InterventionQueue, monitor: Make) -> None:
    put(queue)
    queue_file(queue.home).unlink()
    queue_file(queue.home).mkdir()
    async with monitor().run_test(size=SIZE) as pilot:
        assert "UNREADABLE" in text(pilot)
        assert "interventions doctor" in text(pilot)


async def test_a_lock_that_somebody_keeps_is_told_until_it_is_free(
    queue: InterventionQueue,
    monitor: Make,
    other: OtherProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("monitor.core.source._LOCKED_AFTER_S", 0.2)
    put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        number = other.hold(queue.home, held=True)
        try:
            await until(pilot, lambda: f"locked: by process {number}" in text(pilot))
            assert "locked · " in text(pilot)
            assert "end it: the lock goes with it" in " ".join(text(pilot).split())
            assert rows(pilot).rows
        finally:
            other.hold(queue.home, held=False)
        await until(pilot, lambda: "locked" not in text(pilot))


async def test_a_folder_that_cannot_be_looked_into_is_a_state_in_every_tab(
    queue: InterventionQueue, monitor: Make
) -> None:
    put(queue)
    folder = state_folder(queue.home)
    shutil.rmtree(folder)
    folder.write_text("a file where the folder was")
    async with monitor().run_test(size=SIZE) as pilot:
        for tab in "12345":
            await pilot.press(tab)
            await until(pilot, lambda: str(folder) in "".join(text(pilot).split()))
        await pilot.press("1", "z", "r")
        await until(pilot, lambda: top(pilot) == "TriageScreen")


async def test_a_full_queue_says_what_merges_and_what_was_dropped(
    queue: InterventionQueue, monitor: Make
) -> None:
    for number in range(6):
        put(queue, session_id="abc", error_type=f"E{number}")
    for number in range(11):
        put(queue, session_id=f"s{number}", error_type="HTTPStatusError")
    emergency_log(queue.home, utc_now().date()).parent.mkdir(parents=True, exist_ok=True)
    with emergency_log(queue.home, utc_now().date()).open("a") as file:
        file.write(
            '{"admission": "dropped", "reason": "queue_full", "id": "x%d"}\n' * 12 % (*range(12),)
        )
    async with monitor().run_test(size=(130, 24)) as pilot:
        shown = text(pilot)
        assert "● warning · 15/50 open · dropped 12" in shown
        assert "session abc 5/5 merging" in shown
        assert "HTTPStatusError 10/10 counting" in shown
        assert "dropped 12" in shown


async def test_an_exported_bundle_is_read_only(queue: InterventionQueue, tmp_path: Path) -> None:
    same = {"fingerprint": "b" * 16, "error_type": "Broken"}
    queue.resolve(put(queue, **same), "the earlier note")
    again = put(queue, session_id="later", **same)
    document = as_json(queue.find(again), queue.similar(again), queue.journal(again), utc_now())
    bundle = tmp_path / "bundle.json"
    bundle.write_text(document)
    source = BundleSource(bundle, utc_now)
    async with Monitor(source, source.read()).run_test(size=SIZE) as pilot:
        assert "bundle.json (read-only)" in text(pilot)
        await pilot.press("r", "d", "s", "z", "enter")
        await until(pilot, lambda: "the earlier note" in text(pilot))
        assert reading(pilot)
        await pilot.press("escape", "2")
        await until(pilot, lambda: "Broken: " in text(pilot))
        await pilot.press("4")
        await until(pilot, lambda: "not part of an exported file" in text(pilot))


async def test_a_copy_of_a_queue_shows_closed_entries_too(
    queue: InterventionQueue, tmp_path: Path
) -> None:
    queue.resolve(put(queue), "done")
    put(queue)
    copy = shutil.copy(queue_file(queue.home), tmp_path / "copy.json")
    source = BundleSource(Path(copy), utc_now)
    async with Monitor(source, source.read()).run_test(size=SIZE) as pilot:
        assert len(rows(pilot).rows) == 2
        assert "RESOLVED" in text(pilot)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"intervention": {}}', '{"intervention": 3}'])
def test_what_is_no_bundle_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(QueueError, match="no exported intervention"):
        BundleSource(path, utc_now)
    with pytest.raises(QueueError, match="cannot read"):
        BundleSource(tmp_path / "missing.json", utc_now)


async def test_hostile_text_is_shown_and_not_obeyed(
    queue: InterventionQueue, monitor: Make
) -> None:
    hostile = "[bold]b[/bold] [link=http://x]l[/link] \x1b[2J\x1b]0;title\x07 [@click=app.quit]q[/]"
    put(
        queue,
        error_message=hostile,
        phase="[red]",
        session_id="\x1b[1m",
        traceback=hostile,
        context={"turn": {"question": hostile, "evidence": ["x", {"passages": 3}], "ribbon": 5}},
    )
    async with monitor().run_test(size=(140, 50)) as pilot:
        await until(pilot, lambda: "Traceback" in text(pilot))
        shown = text(pilot)
        assert "\x1b" not in shown
        assert "[bold]b[/bold]" in shown
        assert "[@click=app.quit]q[/]" in shown
