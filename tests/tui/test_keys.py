"""Every key of the table, on a real queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from textual.binding import Binding
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.entry import is_open, short_id
from interventions.errors import SettingsError
from interventions.home import emergency_log
from interventions.retry.contract import LiveTurn
from interventions.settings import MonitorSettings, settings_of
from interventions.times import to_text, utc_now
from interventions.view.query import parse
from monitor.app import Monitor
from monitor.core.feeds import Feed
from monitor.core.model import Sort, TriageModel
from monitor.core.source import LiveSource, Snapshot
from monitor.forms.form import Form
from monitor.forms.retry import RetryForm
from monitor.forms.transitions import ConfirmForm
from monitor.screens.help import HelpScreen
from monitor.screens.tabs import TurnsTab
from monitor.screens.triage import TriageScreen
from monitor.widgets.detail_view import DetailView
from monitor.widgets.keys import KeyBar
from monitor.widgets.row_list import RowList
from monitor.widgets.search_line import SearchInput, SearchLine
from monitor.widgets.text_view import TextView
from tests.tui.other_process import OtherProcess
from tests.tui.scene import fill, paste, put, turn, until
from tests.tui.seen import app, current, line_of_cursor, reading, rows, text, told, top, triage

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
NARROW, WIDE = (80, 24), (130, 40)


async def test_moving(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 40)
    async with monitor().run_test(size=NARROW) as pilot:
        places = []
        for keys in ("j", "down", "k", "up", "ctrl+d", "ctrl+u", "G", "g", "end", "home"):
            await pilot.press(*keys.split())
            places.append(rows(pilot).cursor)
        half = places[4]
        assert places == [1, 2, 1, 0, half, 0, 39, 0, 39, 0]
        assert 5 < half < 15
        await pilot.press("pagedown")
        await until(pilot, lambda: half < rows(pilot).cursor < 39)
        await pilot.press("pageup")
        await until(pilot, lambda: rows(pilot).cursor == 0)


async def test_the_cursor_is_always_in_sight(queue: InterventionQueue, monitor: Make) -> None:
    ids = fill(queue, 40)
    async with monitor().run_test(size=(80, 16)) as pilot:
        for key in ("G", "ctrl+u", "k", "g", "ctrl+d", "ctrl+d", "j"):
            await pilot.press(key)
            entry = queue.find(current(pilot))
            assert entry["id"] in ids
            assert 0 <= line_of_cursor(pilot) < rows(pilot).size.height - 1


async def test_a_line_of_the_log_as_a_screen_when_narrow(
    queue: InterventionQueue, monitor: Make
) -> None:
    for number in range(2):
        put(queue, error_message=f"it broke {number}")
    async with monitor().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "it broke 1" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "error_message: it broke 1" in text(pilot))
        await pilot.press("n")
        await until(pilot, lambda: "error_message: it broke 0" in text(pilot))
        await pilot.press("N", "y")
        await until(pilot, lambda: "error_message: it broke 1" in pilot.app.clipboard)
        await pilot.press("question_mark")
        await until(pilot, lambda: "Close it as solved" in text(pilot))
        await pilot.press("escape", "q")
        await until(pilot, lambda: not reading(pilot))


async def test_detail_as_a_screen_when_narrow(queue: InterventionQueue, monitor: Make) -> None:
    first = put(queue, error_message="the first [bold]one[/bold] \x1b[31m", severity="critical")
    second = put(queue, error_message="the second")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "the first [bold]one[/bold] \\u001b[31m" in text(pilot))
        assert reading(pilot)
        await pilot.press("n")
        await until(pilot, lambda: "the second" in text(pilot))
        assert current(pilot) == second
        await pilot.press("space")
        await until(pilot, lambda: triage(pilot).targets() == [triage(pilot).detail.entry])
        await until(pilot, lambda: not triage(pilot).model.marked)
        await pilot.press("N")
        await until(pilot, lambda: "the first" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: (reading(pilot), current(pilot)) == (False, first))
        await pilot.press("enter", "q")
        await until(pilot, lambda: not reading(pilot))


async def test_detail_beside_the_list_when_wide(queue: InterventionQueue, monitor: Make) -> None:
    put(queue, error_message="the first", severity="critical")
    second = put(queue, error_message="the second")
    async with monitor().run_test(size=WIDE) as pilot:
        await until(pilot, lambda: "phase planner" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.focused, DetailView))
        await pilot.press("j", "k", "G", "g", "ctrl+d", "ctrl+u", "escape")
        await until(pilot, lambda: rows(pilot).has_focus)
        await pilot.press("j")
        await until(pilot, lambda: f"Error01  {short_id(second)}" in text(pilot))
        await pilot.press("enter", "q")
        await until(pilot, lambda: rows(pilot).has_focus)
        await pilot.press("q")
    assert pilot.app.return_code == 0


async def test_the_detail_tells_all(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 1)
    async with monitor().run_test(size=(200, 80)) as pilot:
        await until(pilot, lambda: "Environment" in text(pilot))
        shown = text(pilot)
        for words in (
            "✓ ✓ ✓ ✓ ✗ · · ·",
            "coordinator failed after 62 ms, 3 never ran",
            "search took longer than 30 s",
            "How do topics differ from services?",
            "recipes/planner.md",
            "doc.search topics services",
            "7.250  robots.md:5",
            "resolved_query",
            "git_commit",
        ):
            assert words in shown, words


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
async def test_the_keys_that_matter_are_in_sight_on_a_narrow_terminal(
    queue: InterventionQueue, monitor: Make, size: tuple[int, int]
) -> None:
    fill(queue, 1)
    async with monitor().run_test(size=size) as pilot:
        essential = ("⏎ Detail", "r Resolve", "t Retry", "d Dismiss", "? more", "q Quit")
        await until(pilot, lambda: all(words in _bottom(pilot) for words in essential))
        await pilot.press("enter")
        await until(pilot, lambda: reading(pilot))
        await until(pilot, lambda: "f Fold / Search }{ Part q Back" in _bottom(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "⏎ Detail q Quit" in _bottom(pilot))
        await pilot.click("KeyBar", offset=(_bottom(pilot).index("? more"), 0))
        await until(pilot, lambda: top(pilot) == "HelpScreen")


async def test_every_key_is_in_sight_on_a_wide_terminal(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 1)
    table = (
        "⏎ Detail q Quit r Resolve t Retry s Snooze d Dismiss / Filter space Mark z Undo "
        "p Pause yY Copy e Editor a Assign o Reopen [] Tab SAO Sort nN Match ^a f Fold R ^p ? Help"
    )
    async with monitor().run_test(size=(240, 70)) as pilot:
        await until(pilot, lambda: "q Quit" in _bottom(pilot))
        shown = _bottom(pilot).split()
        assert [word for word in table.split() if word not in shown] == []


async def test_the_footer_has_whole_keys(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 1)
    async with monitor().run_test(size=(60, 24)) as pilot:
        for width in (60, 80, 100, 110, 130, 160):
            await pilot.resize_terminal(width, 24)
            await until(
                pilot, lambda width=width: triage(pilot).query_one(KeyBar).size.width == width
            )
            await until(pilot, lambda: _bottom(pilot).endswith(" ? more"))
            active = triage(pilot).active_bindings.values()
            known = {each.binding.description for each in active}
            names = _bottom(pilot).split()[1::2]
            assert set(names[:-1]) <= known | {"Go", "to"}, width
            assert len(_bottom(pilot)) <= width


def _bottom(pilot: Pilot[Any]) -> str:
    return text(pilot).split("\n")[-1]


async def test_a_long_message_leaves_the_question_in_sight(
    queue: InterventionQueue, monitor: Make
) -> None:
    page = f"bad gateway\n{'<p>no</p> ' * 300}the end"
    put(queue, error_message=page, context={"turn": turn("planner")})
    async with monitor().run_test(size=(120, 40)) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "How do topics differ" in text(pilot))
        assert "more characters" in text(pilot)
        await pilot.press("f")
        await until(pilot, lambda: "more characters" not in text(pilot))
        await pilot.press("slash", *"the end", "enter")
        await until(pilot, lambda: "▏ the end" in text(pilot))


async def test_a_detail_by_parts_by_words_and_unfolded(
    queue: InterventionQueue, monitor: Make
) -> None:
    frames = "".join(f"    lib.py:{number} in library_call\n" for number in range(9))
    trace = f'E: no\n  File "a.py", line 1, in read\n  >     1 | x\n  In libraries (9):\n{frames}'
    context = {"turn": turn("planner"), "hint": "Start the server", "more": ["word"] * 30}
    put(queue, context=context, traceback=trace, location="a.py:1")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "Start the server" in text(pilot))
        titles = [part.title for part in triage(pilot).detail.parts]
        assert titles[:6] == ["", "Hint", "Question", "Evidence", "Input of the phase", "Traceback"]
        for title in titles[1:6]:
            await pilot.press("right_curly_bracket")
            shown = text(pilot).split("\n")
            assert title in shown[0] or triage(pilot).detail.is_vertical_scroll_end
        assert "library_call" not in text(pilot)
        await pilot.press("f")
        await until(pilot, lambda: "library_call" in text(pilot))
        await pilot.press("f", "left_curly_bracket", "g", "slash")
        await paste(pilot, "LIBRARY_call")
        await pilot.press("enter")
        await until(pilot, lambda: "lib.py:0" in text(pilot).split("\n")[0])
        await pilot.press("n", "N", "n", "n")
        await until(pilot, lambda: "lib.py:2" in text(pilot).split("\n")[0])
        await pilot.press("slash", "escape", "n")
        await until(pilot, lambda: reading(pilot))


async def test_source_lines_get_their_colours(queue: InterventionQueue, monitor: Make) -> None:
    """Also while no other word of the detail changes: of an old entry no age does for a while."""
    put(queue, traceback='  File "a.py", line 41, in read\n  >    41 |     return here\nOSError')
    later = utc_now() + timedelta(hours=2)
    async with monitor(lambda: later).run_test(size=WIDE) as pilot:

        def words() -> list[str]:
            strips = pilot.app.screen._compositor.render_strips()
            lines = (strip for strip in strips if "41 | return here" in strip.text)
            return [segment.text.strip() for strip in lines for segment in strip]

        await until(pilot, words)
        await until(pilot, lambda: "return" in words())


async def test_long_lines_of_code_are_broken(queue: InterventionQueue, monitor: Make) -> None:
    code = "  >    41 |     return Plan(**json.loads(body), " + "strict=True, " * 12 + "end=1)"
    put(queue, traceback=f'ValueError: no\n  File "a.py", line 41, in read\n{code}')
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "\n      |" in text(pilot))
        assert "end=1)" in text(pilot)


async def test_filter(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 12)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("slash", "s")
        await until(pilot, lambda: "⏎ Keep esc Clear" in _bottom(pilot))
        assert "/ Filter" not in _bottom(pilot)
        await paste(pilot, "ev:med")
        await until(pilot, lambda: len(rows(pilot).rows) == 2)
        await pilot.press("enter")
        await until(pilot, lambda: "/ sev:med  esc clears it" in text(pilot))
        await pilot.press("n")
        await until(pilot, lambda: rows(pilot).cursor == 1)
        await pilot.press("n")
        await until(pilot, lambda: rows(pilot).cursor == 0)
        await pilot.press("N")
        await until(pilot, lambda: rows(pilot).cursor == 1)
        await pilot.press("escape")
        await until(pilot, lambda: len(rows(pilot).rows) == 12)
        await until(pilot, lambda: "esc clears it" not in text(pilot))
        await pilot.press("slash")
        await paste(pilot, "sev:purple")
        await until(pilot, lambda: "says nothing" in text(pilot))
        assert len(rows(pilot).rows) == 12
        await pilot.press("escape")
        await until(pilot, lambda: rows(pilot).has_focus)
        await pilot.press("slash")
        await paste(pilot, "nosuchthing")
        await pilot.press("enter")
        await until(pilot, lambda: "NOTHING MATCHES" in text(pilot))
        assert "nosuchthing  (none of 12)" in text(pilot)


async def test_sorts(queue: InterventionQueue, monitor: Make) -> None:
    ids = fill(queue, 6)
    for _ in range(3):
        put(queue, session_id="session-0", error_type="Many", phase="save")
    async with monitor().run_test(size=NARROW) as pilot:
        groups = lambda: triage(pilot).model.groups(utc_now())  # noqa: E731
        shown = lambda: [group.first["id"] for group in groups()]  # noqa: E731
        await pilot.press("A")
        assert shown()[-1] == ids[5]
        await until(pilot, lambda: "LAST▾" in text(pilot))
        await pilot.press("A")
        assert shown()[-1] == ids[5]
        await until(pilot, lambda: "FIRST▾" in text(pilot))
        await pilot.press("O")
        counts = [queue.find(key)["occurrences"] for key in shown()]
        assert counts == sorted(counts, reverse=True)
        await pilot.press("S")
        severities = [queue.find(key)["severity"] for key in shown()]
        assert severities == sorted(severities, key=["critical", "high", "medium"].index)


async def test_folding_keeps_the_cursor_on_its_item(
    queue: InterventionQueue, monitor: Make
) -> None:
    same = {"error_type": "Same", "fingerprint": "f" * 16, "error_message": "same"}
    put(queue, severity="critical")
    alike = [put(queue, session_id=f"other-{n}", **same) for n in range(3)]
    async with monitor().run_test(size=NARROW) as pilot:
        assert len(rows(pilot).rows) == 2
        assert "▸3" in text(pilot)
        await pilot.press("j", "r")
        await until(pilot, lambda: "the row stands for all 3 of one cause" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: {e["id"] for e in triage(pilot).targets()} == set(alike))
        await pilot.press("f")
        await until(pilot, lambda: len(rows(pilot).rows) == 5)
        await until(pilot, lambda: ("▾3" in text(pilot), len(triage(pilot).targets())) == (True, 3))
        await pilot.press("j", "j")
        await until(pilot, lambda: len(triage(pilot).targets()) == 1)
        await until(pilot, lambda: "└" in text(pilot))
        await pilot.press("f")
        await until(pilot, lambda: (len(rows(pilot).rows), rows(pilot).cursor) == (2, 1))
        await pilot.press("g", "f")  # a cause of one has nothing to unfold
        await until(pilot, lambda: "Fold does not apply here" in told(pilot))
        assert len(rows(pilot).rows) == 2


async def test_marks_and_bulk(queue: InterventionQueue, monitor: Make) -> None:
    ids = fill(queue, 12)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("space", "space")
        await until(pilot, lambda: "12 (2 marked)" in text(pilot))
        await pilot.press("ctrl+a")
        await until(pilot, lambda: "12 (12 marked)" in text(pilot))
        await pilot.press("ctrl+a", "slash")
        await paste(pilot, "sev:medium")
        await pilot.press("enter", "ctrl+a")
        await until(pilot, lambda: "12 (2 marked)" in text(pilot))
        await pilot.press("slash", "ctrl+u")
        await paste(pilot, "sev:crit")
        await pilot.press("enter", "r")
        await until(pilot, lambda: "Resolve 2 interventions" in text(pilot))
        assert "2 of them are marked but not shown by the filter" in text(pilot)
        await paste(pilot, "fixed")
        await pilot.press("enter")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        closed = [entry["id"] for entry in queue.entries() if not is_open(entry)]
        assert sorted(closed) == sorted([ids[4], ids[10]])
        await until(pilot, lambda: "resolved 2" in told(pilot))
        await pilot.press("z")
        await until(pilot, lambda: all(map(is_open, queue.entries())))


async def test_marks_and_bulk_in_the_history(queue: InterventionQueue, monitor: Make) -> None:
    for entry_id in fill(queue, 4):
        queue.resolve(entry_id, "too early")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: len(rows(pilot).rows) == 4)
        await pilot.press("space", "space")
        await until(pilot, lambda: "History (2 marked)" in text(pilot))
        await pilot.press("ctrl+a", "o")
        await until(pilot, lambda: "Reopen 4 interventions" in text(pilot))
        await pilot.press("escape", "escape")
        await until(pilot, lambda: "marked" not in text(pilot))
        await pilot.press("g", "space", "slash")
        await paste(pilot, "sev:crit")
        await pilot.press("enter", "ctrl+a", "o")
        await until(pilot, lambda: "1 of them are marked but not shown" in text(pilot))
        await pilot.press("y")
        await until(pilot, lambda: "reopened 2" in told(pilot))
        assert len([entry for entry in queue.entries() if is_open(entry)]) == 2


async def test_the_filter_holds_in_every_tab(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 6)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("4", "slash")
        await paste(pilot, "phase:save")
        await until(pilot, lambda: "NOTHING MATCHES" in text(pilot))
        await pilot.press("ctrl+u")
        await paste(pilot, "sev:crit -error:key")
        await until(pilot, lambda: len(rows(pilot).rows) == 1)
        await pilot.press("enter", "space")
        await until(pilot, lambda: "Mark does not apply" in told(pilot))
        await pilot.press("1")
        await until(pilot, lambda: len(rows(pilot).rows) == 1)


def test_turns_are_filtered_by_what_is_shown_of_them() -> None:
    shown: LiveTurn = {
        "turn_id": 7,
        "status": "failed",
        "session_id": "ros",
        "question": "How do topics differ?",
        "started_at": "2026-01-01T00:00:00Z",
        "ribbon": turn("planner")["ribbon"],
        "error": "KeyError: 'route'",
    }
    found = TurnsTab(TriageModel(Snapshot(utc_now()))).as_entry(shown)
    for wanted in ("", "topics", "failed", "phase:planner", "session:ros", "turn:7", "error:key"):
        assert parse(wanted).matches(found, utc_now()), wanted
    for unwanted in ("running", "phase:save", "sev:high", "age:<1h", "turn:8"):
        assert not parse(unwanted).matches(found, utc_now()), unwanted


def test_a_turn_has_the_time_by_which_turns_are_listed() -> None:
    now = utc_now()
    began, changed = (to_text(now - timedelta(minutes=minutes)) for minutes in (90, 5))
    model = TriageModel(Snapshot(now))
    for moments, wanted in (({"changed_at": changed}, "5m"), ({}, "1h")):
        shown: LiveTurn = {"turn_id": 7, "status": "failed", "started_at": began}
        tab = TurnsTab(model)
        tab.feed = Feed("turns", [cast(LiveTurn, {**shown, **moments})])
        assert tab.rows(now)[0].cells[1].text == wanted


async def test_escape_drops_the_marks_last(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 3)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("space", "slash", *"sev:high", "enter", "escape")
        await until(pilot, lambda: "(1 marked)" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "marked" not in text(pilot))


async def test_pause_counts_and_goes_on(
    queue: InterventionQueue, monitor: Make, home: Path, other: OtherProcess
) -> None:
    fill(queue, 2)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("p")
        other.put(home, error_type="AfterPause")
        await until(pilot, lambda: "PAUSED +1 new" in text(pilot))
        assert "AfterPause" not in text(pilot)
        await pilot.press("p")
        await until(pilot, lambda: "NEW AfterPause" in text(pilot))
        assert "PAUSED" not in text(pilot)


async def test_many_are_told_with_those_that_the_filter_hides(
    queue: InterventionQueue, monitor: Make
) -> None:
    for number in range(12):
        severity = ("critical", "high", "medium")[number % 3]
        put(queue, error_message="it could not be done " * 6, severity=severity)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("ctrl+a", "slash")
        await paste(pilot, "sev:high")
        await pilot.press("enter", "d")
        await until(pilot, lambda: "Dismiss 12 interventions" in text(pilot))
        assert "and 4 more" in text(pilot)
        assert "8 of them are marked but not shown by the filter" in text(pilot)


async def test_tabs(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 3)
    queue.resolve(put(queue, error_type="Old"), "was a typo")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "Old: it broke" in text(pilot))
        assert "was a typo" in text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: reading(pilot))
        await pilot.press("escape", "right_square_bracket")
        await until(pilot, lambda: "NO TURNS YET" in text(pilot))
        await pilot.press("4")
        await until(pilot, lambda: "accepted" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "error_message:" in text(pilot))
        await pilot.press("q", "left_square_bracket", "1")
        await until(pilot, lambda: triage(pilot).tab.name == "open")
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: triage(pilot).tab.name == "trends")
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: triage(pilot).tab.name == "open")


async def test_copying(
    queue: InterventionQueue, monitor: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(queue, error_message="copy me")
    taken = tmp_path / "taken"
    program = tmp_path / "xclip"
    program.write_text(f"#!/bin/sh\ncat > {taken}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":9")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("y")
        await until(pilot, lambda: "it is in the clipboard" in told(pilot))
        assert taken.read_text() == first
        await pilot.press("Y")
        await until(pilot, lambda: "as Markdown" in told(pilot))
        assert taken.read_text().startswith(f"# {first}")
        assert "copy me" in pilot.app.clipboard
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("TMUX", raising=False)
        await pilot.press("y")
        await until(pilot, lambda: "does not say whether" in told(pilot))


async def test_editor_without_a_line_or_a_terminal(
    queue: InterventionQueue, monitor: Make, tmp_path: Path
) -> None:
    put(queue, location="/nowhere/at/all.py:3", severity="critical")
    source = tmp_path / "mine.py"
    source.write_text("x = 1\n")
    put(queue, location=f"{source}:1")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("e")
        await until(pilot, lambda: "not on this machine" in told(pilot))
        await pilot.press("j", "e")
        await until(pilot, lambda: "no editor can be opened from here" in told(pilot))


async def test_refresh_help_and_palette(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 2)
    async with monitor().run_test(size=(100, 60)) as pilot:
        await pilot.press("R", "question_mark")
        await until(pilot, lambda: top(pilot) == "HelpScreen")
        shown = text(pilot)
        for name in (
            "Resolve",
            "Retry",
            "Snooze",
            "Dismiss",
            "Undo",
            "Filter",
            "Mark all",
            "Pause",
        ):
            assert name in shown
        await pilot.press("j", "k", "question_mark", "ctrl+p")
        await until(pilot, lambda: top(pilot) == "CommandPalette")
        await paste(pilot, "by count")
        await until(pilot, lambda: "The most frequent first" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        await until(pilot, lambda: triage(pilot).model.order is Sort.COUNT)


@pytest.mark.parametrize(
    "kind",
    [
        Monitor,
        *(TriageScreen, HelpScreen, RowList, TextView, SearchInput, SearchLine),
        *(Form, ConfirmForm, RetryForm),
    ],
)
def test_every_binding_has_an_id_and_says_what_it_does(kind: type[Any]) -> None:
    own = vars(kind)["BINDINGS"]
    assert own
    for binding in own:
        assert isinstance(binding, Binding)
        assert binding.id
        assert binding.description
        assert binding.tooltip


async def test_a_key_can_be_another(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 1)
    async with monitor().run_test(size=NARROW) as pilot:
        pilot.app.set_keymap({"act.resolve": "x"})
        await pilot.press("x")
        await until(pilot, lambda: top(pilot) == "ResolveForm")


async def test_refresh_reads_what_no_mark_tells(queue: InterventionQueue, monitor: Make) -> None:
    """The emergency log of another day is not looked at ten times a second."""
    fill(queue, 1)
    log = emergency_log(queue.home, date(2020, 1, 1))
    start = utc_now()  # stands still: a new minute is a reason to read, too
    async with monitor(lambda: start).run_test(size=WIDE) as pilot:
        stamp, looks = triage(pilot).state.source.stamp, list[object]()
        triage(pilot).state.source.stamp = lambda: (looks.append(None), stamp())[1]  # type: ignore[method-assign]
        await until(pilot, lambda: len(looks) > 1)  # what is read at the start has been read
        log.write_text('{"admission": "dropped", "reason": "queue_full"}\n' * 7)
        before = len(looks)
        await until(pilot, lambda: len(looks) > before + 1)
        assert "dropped" not in text(pilot)
        await pilot.press("R")
        await until(pilot, lambda: "dropped 7" in text(pilot))


async def test_the_mouse(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 6)
    async with monitor().run_test(size=NARROW) as pilot:
        second = triage(pilot).model.groups(utc_now())[1].first["id"]
        await pilot.click(rows(pilot), offset=(20, 3))
        await until(pilot, lambda: current(pilot) == second)
        await pilot.click(rows(pilot), offset=(0, 3))
        await until(pilot, lambda: "(1 marked)" in text(pilot))
        await pilot.click(rows(pilot), offset=(0, 3))
        await until(pilot, lambda: "(1 marked)" not in text(pilot))
        await pilot.click(rows(pilot), offset=(8, 0))
        await until(pilot, lambda: "LAST▾" in text(pilot))
        await pilot.click(rows(pilot), offset=(20, 1))
        await pilot.click(rows(pilot), offset=(20, 1))
        await until(pilot, lambda: reading(pilot))
        await pilot.press("q")
        await until(pilot, lambda: not reading(pilot) and triage(pilot).query_one("#tabs").display)
        for _ in range(100):  # a click before the tabs are painted meets nothing
            await pilot.click("#tabs", offset=(14, 0))
            if triage(pilot).tab.name == "history":
                break
        assert triage(pilot).tab.name == "history"


async def test_ctrl_c_quits_at_once(queue: InterventionQueue, monitor: Make) -> None:
    put(queue)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("r", "escape", "ctrl+c")
    assert app(pilot).return_code == 0


async def test_undo_in_a_row_says_what_it_took_back_and_asks(
    queue: InterventionQueue, monitor: Make
) -> None:
    ids = fill(queue, 6)
    async with monitor().run_test(size=NARROW) as pilot:
        for number in range(4):
            await pilot.press("r")
            await paste(pilot, f"note {number}")
            await pilot.press("enter")
            await until(pilot, lambda: top(pilot) == "TriageScreen")
        for left in (3, 2):
            await pilot.press("z")
            await until(pilot, lambda left=left: f"z takes back {left} more" in told(pilot))
            assert "undid: resolved 1: " in told(pilot)
        await pilot.press("z")
        await until(pilot, lambda: top(pilot) == "UndoForm")
        assert "this was: resolved 1: " in text(pilot)
        await pilot.press("y")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        assert sum(is_open(queue.find(own)) for own in ids) == 5
        await pilot.press("r", "escape", "z")
        await until(pilot, lambda: top(pilot) == "UndoForm")
        await pilot.press("escape")
        assert sum(is_open(queue.find(own)) for own in ids) == 5


async def test_an_undo_leads_to_what_came_back(queue: InterventionQueue, monitor: Make) -> None:
    fill(queue, 6)
    async with monitor().run_test(size=NARROW) as pilot:
        worst = rows(pilot).cursor_key
        await pilot.press("r", *"done", "enter")
        await until(pilot, lambda: rows(pilot).cursor_key != worst)
        await pilot.press("z")
        await until(pilot, lambda: rows(pilot).cursor_key == worst)


async def test_two_changes_of_one_entry_are_undone_one_after_the_other(
    queue: InterventionQueue, monitor: Make
) -> None:
    own = put(queue, severity="critical")
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("s", "enter")
        await until(pilot, lambda: "snoozed 1" in told(pilot))
        await pilot.press("a", *"ada", "enter")
        await until(pilot, lambda: "assigned 1" in told(pilot))
        await pilot.press("r", *"done", "enter")
        await until(pilot, lambda: "resolved 1" in told(pilot))
        for action in ("resolved", "assigned"):
            await pilot.press("z")
            await until(pilot, lambda action=action: f"undid: {action} 1" in told(pilot))
        assert queue.find(own)["snoozed_until"]
        assert not queue.find(own)["owner"]
        await pilot.press("z")
        await until(pilot, lambda: top(pilot) == "UndoForm")
        await pilot.press("y")
        await until(pilot, lambda: top(pilot) == "TriageScreen")
        entry = queue.find(own)
        assert is_open(entry)
        assert not entry["snoozed_until"]


async def test_a_change_of_somebody_else_in_between_is_not_undone(
    queue: InterventionQueue, monitor: Make
) -> None:
    own = put(queue)
    async with monitor().run_test(size=NARROW) as pilot:
        await pilot.press("s", "enter")
        await until(pilot, lambda: "snoozed 1" in told(pilot))
        queue.assign(own, "bob", by="bob")
        await until(pilot, lambda: "@bob" in text(pilot))
        await pilot.press("r", *"done", "enter")
        await until(pilot, lambda: "resolved 1" in told(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "undid: resolved 1" in told(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "is version" in told(pilot))
        assert queue.find(own)["owner"] == "bob"


async def test_a_greyed_key_says_so_and_comes_alive(
    queue: InterventionQueue, monitor: Make
) -> None:
    queue.resolve(put(queue), "done")
    async with monitor().run_test(size=(240, 30)) as pilot:
        await until(pilot, lambda: "Resolve" in _bottom(pilot))

        def resolve_is_grey() -> bool:
            line = triage(pilot).query_one(KeyBar).render()
            at = line.plain.index("r Resolve")
            (style,) = (span.style for span in line.spans if span.start == at)
            return "dim" in str(style)

        for name in ("r", "n", "f", "space", "y"):
            await pilot.press(name)
            await until(pilot, lambda: "does not apply here" in told(pilot))
        assert resolve_is_grey()
        put(queue, error_type="Fresh")
        await until(pilot, lambda: not resolve_is_grey())


async def test_the_keys_are_there_before_the_window_has_the_focus(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 1)
    behind = monitor()
    behind.set_reactive(Monitor.app_focus, False)
    async with behind.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "r Resolve" in _bottom(pilot))


async def test_the_help_is_in_groups_and_can_be_searched(
    queue: InterventionQueue, monitor: Make
) -> None:
    fill(queue, 1)
    async with monitor().run_test(size=(100, 90)) as pilot:
        await pilot.press("question_mark")
        lines = [line.strip("│ ") for line in text(pilot).splitlines()]
        for title in ("Change", "The list", "Sort", "Tabs", "Move", "Marks of a row"):
            assert any(title in line for line in lines)
        await pilot.press("slash", *"by count")
        await until(pilot, lambda: "(sort.count)" in text(pilot))
        assert "Resolve " not in text(pilot).partition("Keys")[2].partition("search")[0]
        await pilot.press("escape", "escape")
        await until(pilot, lambda: top(pilot) == "TriageScreen")


def _with(home: Path, **settings: Any) -> Monitor:
    source = LiveSource(InterventionQueue(home))
    return Monitor(source, source.read(), settings=MonitorSettings(**settings))


async def test_theme_bell_and_keys_are_settings(queue: InterventionQueue, home: Path) -> None:
    (home / "unified_flow.toml").write_text(
        '[monitor]\ntheme = "light"\nbell = false\nkeys = "act.resolve=x act.undo=ctrl+g,u"\n'
    )
    fill(queue, 1)
    settings = settings_of(home, MonitorSettings)
    assert settings == MonitorSettings("light", False, "act.resolve=x act.undo=ctrl+g,u")
    async with _with(home, **asdict(settings)).run_test(size=(240, 40)) as pilot:
        assert pilot.app.theme == "light"
        await until(pilot, lambda: "x Resolve t Retry" in _bottom(pilot))
        rung: list[object] = []
        pilot.app.bell = lambda: rung.append(None)  # type: ignore[method-assign]
        put(queue, severity="critical")
        await until(pilot, lambda: "critical: " in told(pilot))
        assert not rung
        await pilot.press("x")
        await until(pilot, lambda: top(pilot) == "ResolveForm")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"theme": "purple"}, "'purple' is none"),
        ({"keys": "act.resolv=x"}, "act.resolv is no ID"),
        ({"keys": "act.resolve"}, "act.resolve is no ID, or has no KEY"),
        ({"keys": "act.resolve=t"}, "t is the key of act.resolve and of act.retry"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(
    home: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        _with(home, **settings)
