"""A real other process changes the queue while somebody looks at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.entry import is_open
from interventions.times import utc_now
from monitor.app import Monitor
from monitor.core.rows import Cell
from monitor.core.source import LiveSource
from monitor.screens.tab import Item
from monitor.widgets.row_list import RowList
from monitor.widgets.text_view import Part
from tests.tui.other_process import OtherProcess
from tests.tui.scene import NOW, fill, paste, put, until
from tests.tui.seen import current, line_of_cursor, problem, rows, text, told, top, triage

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
SIZE = (100, 24)


def _listed(pilot: Pilot[Any]) -> str:
    """The errors in the list, whatever stands before it."""
    return " ".join(row.cells[7].text for row in rows(pilot).rows)


def _open_ids(pilot: Pilot[Any]) -> list[str]:
    """Of the entries in the list."""
    return [entry["id"] for row in rows(pilot).rows for entry in row.entries]


async def test_a_new_failure_appears_below_a_form_too(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    fill(queue, 5)
    async with monitor().run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "5/50 open" in text(pilot))
        for number in range(2):
            other.put(home, error_type=f"Fresh{number}", session_id=f"x{number}")
            await until(pilot, lambda name=f"Fresh{number}": name in _listed(pilot))
            await pilot.press("r")


async def _assert_nothing_stays_as_it_was(pilot: Pilot[Any], after: object) -> None:
    """Colours too: painting all of it anew makes no difference."""

    def painted() -> list[list[Any]]:
        return [list(strip.simplify()) for strip in pilot.app.screen._compositor.render_strips()]

    await pilot.pause(0.12)
    shown = painted()
    for widget in pilot.app.screen.query("*"):
        widget.refresh()
    assert painted() == shown, after


async def test_only_what_differs_is_painted_and_nothing_stays_as_it_was(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 30)
    keys = ["j", "space", "G", "k", "ctrl+u", "f", "S", "A", "ctrl+a", "z", "2", "j", "1", "enter"]
    keys += ["j", "f", "G", "right_curly_bracket", "slash", "e", "r", "r", "enter", "n", "escape"]
    keys += ["slash", "s", "e", "v", "escape", "question_mark", "j", "escape", "5", "W", "1", "g"]
    async with monitor(lambda: NOW).run_test(size=(130, 24)) as pilot:
        for number, key in enumerate(keys):
            if number % 3 == 0:
                own = put(queue, error_type=f"E{number}", severity="critical")
                queue.resolve(own, "mended") if number % 2 else queue.assign(own, "ada")
            await pilot.press(key)
            await _assert_nothing_stays_as_it_was(pilot, key)


async def test_no_line_stays_as_it_was_at_another_size_theme_or_place(
    queue: InterventionQueue, monitor: Make
) -> None:
    """Of wide and hostile texts too, and while the list becomes shorter under its end."""
    ids = fill(queue, 30)
    for number, words in enumerate(("数据库连接失败", "👩‍👩‍👧e\u0301", "\x1b[31m[bold]\u202e\t")):
        ids.append(put(queue, error_type=f"Odd{number}", error_message=words * 30))
    async with monitor(lambda: NOW).run_test(size=(130, 24)) as pilot:
        for size in ((60, 20), (200, 60), (40, 10), (80, 24), (130, 24)):
            for key in ("G", "g"):
                await pilot.press(key)
                await _assert_nothing_stays_as_it_was(pilot, (size, key))
            await pilot.resize_terminal(*size)
            await _assert_nothing_stays_as_it_was(pilot, size)
        for theme in ("textual-light", "textual-dark"):
            pilot.app.theme = theme
            await _assert_nothing_stays_as_it_was(pilot, theme)
        for view in (rows(pilot), triage(pilot).detail):
            view.scroll_relative(y=5, animate=False)
            await _assert_nothing_stays_as_it_was(pilot, f"{view} scrolled")
        await pilot.press("G")
        while ids:
            for intervention_id in ids[-8:]:
                queue.resolve(intervention_id, "mended")
            del ids[-8:]
            await until(pilot, lambda: len(triage(pilot).model.snapshot.open_entries) == len(ids))
            await _assert_nothing_stays_as_it_was(pilot, len(ids))


async def test_the_first_failure_of_all_appears(
    monitor: Make, home: Path, other: OtherProcess
) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        assert "FIRST RUN" in text(pilot)
        other.put(home, error_type="VeryFirst")
        await until(pilot, lambda: "VeryFirst" in text(pilot))


async def test_the_cursor_stays_on_its_item_and_its_line(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    fill(queue, 30)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("G", "k", "k")
        here, line = current(pilot), line_of_cursor(pilot)
        for number in range(3):
            other.put(
                home, severity="critical", error_type=f"Above{number}", session_id=f"n{number}"
            )
        await until(pilot, lambda: len(rows(pilot).rows) == 33)
        assert (current(pilot), line_of_cursor(pilot)) == (here, line)
        await pilot.press("O")
        await until(pilot, lambda: current(pilot) == here)
        await pilot.press("r")
        await until(pilot, lambda: [entry["id"] for entry in pilot.app.screen.entries] == [here])


async def test_a_form_acts_on_what_it_was_opened_for(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    first, second = put(queue, severity="critical"), put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("j", "r")
        other.put(home, severity="critical", error_type="Above")
        await until(pilot, lambda: len(rows(pilot).rows) == 3)
        await paste(pilot, "mended")
        await pilot.press("enter")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        assert queue.find(second)["resolution"] == "mended"
        assert queue.find(first)["resolved_at"] is None


async def test_what_was_read_before_a_change_from_here_does_not_take_it_back(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 3)
    async with monitor(lambda: NOW).run_test(size=SIZE) as pilot:
        screen, chosen = triage(pilot), current(pilot)
        pilot.app.workers.cancel_group(screen, "_show_queue")  # it reads when this test says so
        before = screen.state.source.read()
        await pilot.press("r")
        await paste(pilot, "mended")
        await pilot.press("enter")
        await until(pilot, lambda: "resolved 1" in told(pilot))
        resolved = screen.state.source.read()
        screen._show_queue(before)
        assert chosen not in _open_ids(pilot)
        await pilot.press("z")
        await until(pilot, lambda: "undid" in told(pilot))
        for late in (resolved, before):
            screen._show_queue(late)
            assert (current(pilot), len(_open_ids(pilot))) == (chosen, 3)


async def test_somebody_else_was_first(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    put(queue, severity="critical")
    second = put(queue)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("j", "r")
        other.resolve(home, second, "bob's note")
        await until(pilot, lambda: "changed by somebody else" in problem(pilot))
        await paste(pilot, "my note")
        await pilot.press("enter")
        await until(pilot, lambda: "resolve by bob" in problem(pilot))
        assert top(pilot) == "ResolveForm"
        await pilot.press("escape")
        assert queue.find(second)["resolution"] == "bob's note"
        await until(pilot, lambda: current(pilot) != second)


async def test_the_history_of_what_is_shown_is_read_again(
    queue: InterventionQueue, monitor: Make
) -> None:
    first = put(queue)
    queue.assign(first, "ada", by="bob")
    async with monitor().run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: "assign by bob" in text(pilot))
        queue.assign(first, "eve", by="carol")
        await until(pilot, lambda: "assign by carol" in text(pilot))


async def test_the_item_under_the_cursor_goes_away(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    ids = [put(queue, created_at=f"2026-01-0{9 - n}T00:00:00Z") for n in range(4)]
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("j")
        other.resolve(home, ids[1], "done")
        await until(pilot, lambda: len(rows(pilot).rows) == 3)
        assert current(pilot) == ids[2]
        await pilot.press("G")
        other.resolve(home, ids[3], "done")
        await until(pilot, lambda: len(rows(pilot).rows) == 2)
        assert current(pilot) == ids[2]


async def test_a_burst_is_read_a_few_times_and_leaves_the_keys_alive(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    fill(queue, 3)
    source = LiveSource(queue)
    reads = 0
    read = source.read

    def counted() -> object:
        nonlocal reads
        reads += 1
        return read()

    source.read = counted  # type: ignore[method-assign,assignment]
    app = Monitor(source, read())
    async with app.run_test(size=SIZE) as pilot:
        burst = asyncio.create_task(asyncio.to_thread(other.burst, home, 40))
        while not burst.done():
            before = rows(pilot).cursor_key
            rows(pilot).action_move(1 if rows(pilot).cursor < 2 else -2)
            assert rows(pilot).cursor_key != before
            await pilot.pause(0.01)
        await until(pilot, lambda: len(rows(pilot).rows) == 43)
        assert reads < 40


async def test_painted_in_part_it_looks_as_painted_whole(
    queue: InterventionQueue, monitor: Make
) -> None:
    moment = utc_now()
    ids = fill(queue, 30, moment)
    async with monitor(lambda: moment).run_test(size=(140, 20)) as pilot:

        async def same(*keys: str) -> None:
            count = sum(map(is_open, queue.entries()))
            await until(pilot, lambda: len(rows(pilot).rows) == count)
            await pilot.press(*keys)
            in_part = text(pilot)
            for widget in pilot.app.screen.query("*"):
                widget.refresh()
                widget.notify_style_update()
            assert text(pilot) == in_part

        await pilot.press("f")
        await same("G")
        for number in range(3):
            put(queue, severity="critical", error_type=f"Worst{number}")
        await same("k", "k")
        queue.resolve(current(pilot), "the one under the cursor")
        await same()
        for intervention_id in ids[2:12]:
            if intervention_id != current(pilot):
                queue.resolve(intervention_id, "somewhere above or below")
        await same("g", "j")
        put(queue, severity="critical", error_type="WorstOfAll")
        await same()


async def test_the_mouse_wheel_is_not_taken_back(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 40)
    async with monitor().run_test(size=SIZE) as pilot:
        rows(pilot).scroll_to(y=15, animate=False, immediate=True)
        put(queue, severity="medium", created_at="2020-01-01T00:00:00Z")
        await until(pilot, lambda: len(rows(pilot).rows) == 41)
        await pilot.pause()
        assert rows(pilot).scroll_offset.y == 15
        await pilot.press("j")
        await until(pilot, lambda: 0 <= line_of_cursor(pilot) < rows(pilot).size.height - 1)


async def test_the_log_follows_what_fails(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 40)
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: len(rows(pilot).rows) == 40)
        put(queue, error_type="Latest")
        await until(pilot, lambda: "Latest" in text(pilot))
        assert rows(pilot).cursor == 0
        await pilot.press("j")
        here = rows(pilot).cursor_key
        put(queue, error_type="LaterYet")
        await until(pilot, lambda: len(rows(pilot).rows) == 42)
        assert rows(pilot).cursor_key == here


async def test_a_tab_opened_while_paused_is_filled_once(
    queue: InterventionQueue, monitor: Make
) -> None:
    queue.resolve(put(queue, error_type="Old"), "done")
    later = put(queue, error_type="Later")
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("p", "2")
        await until(pilot, lambda: "Old: it broke" in text(pilot))
        queue.resolve(later, "done")
        await until(pilot, lambda: triage(pilot).model.pending is not None)
        assert "Later: it broke" not in text(pilot)
        await pilot.press("p")
        await until(pilot, lambda: "Later: it broke" in text(pilot))


async def test_all_of_a_folded_row_was_looked_at(queue: InterventionQueue, monitor: Make) -> None:
    for number in range(3):
        put(queue, session_id=f"s{number}", error_type="Same", fingerprint="f" * 16)
    async with monitor().run_test(size=(130, 40)) as pilot:
        assert "NEW" in text(pilot)
        await until(pilot, lambda: "NEW" not in text(pilot))


async def test_what_came_while_it_was_busy_is_shown_once(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 2)
    async with monitor().run_test(size=SIZE) as pilot:
        shown: list[object] = []
        take = triage(pilot).model.update
        triage(pilot).model.update = lambda snapshot: (shown.append(snapshot), take(snapshot))[1]  # type: ignore[method-assign]
        for _ in range(20):
            put(queue)  # nothing is shown before the next `await`
        await until(pilot, lambda: len(rows(pilot).rows) == 22)
        assert len(shown) < 5


async def test_the_page_of_a_turn_goes_on_with_it(monitor: Make) -> None:
    async with monitor().run_test(size=SIZE) as pilot:
        await pilot.press("3")
        now = ["running"]
        shown = Item(
            "turn-1", (Cell(""),) * 7, text=lambda: [Part("", [Content(f"the turn is {now[0]}")])]
        )
        triage(pilot).tab.rows = lambda now: [shown]  # type: ignore[method-assign]
        triage(pilot).tab.shown = {"turn-1": shown}
        triage(pilot).show()
        triage(pilot).post_message(RowList.Chosen())
        await until(pilot, lambda: "the turn is running" in text(pilot))
        now[0] = "interrupted"
        await until(pilot, lambda: "the turn is interrupted" in text(pilot))
