"""The screen one lives in: header, tabs and lists, and the detail: beside them, or in their place
where the terminal is too narrow for both."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content

from interventions.entry import Entry, turns_of
from interventions.errors import QueryError
from interventions.health import Window
from interventions.times import to_text
from monitor.core import feeds
from monitor.core.app_state import AppState
from monitor.core.links import Place, Subject
from monitor.core.looked import Look, read_look, since_last_look, write_look
from monitor.core.model import Sort, TriageModel
from monitor.core.source import Pulse, Snapshot
from monitor.forms.form import Form
from monitor.screens.entry_actions import EntryScreen
from monitor.screens.tabs import TABS, TrendsTab
from monitor.widgets.header import FilterLine, StatusHeader, TabBar
from monitor.widgets.keys import TRIAGE, KeyBar
from monitor.widgets.row_list import ListPane, RowList
from monitor.widgets.trends_view import TrendChart

_EXAMPLE = "sev:critical phase:planner type:captcha is:snoozed age:>1h text"
_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
_ON_THE_LIST = ("mark", "mark_all", "sort", "fold")
_POLL_S = 0.1
_FEED_S = 0.4
_PULSE_S = 3.0
# A key that is held down moves the cursor only; the detail comes when it rests.
_DETAIL_AFTER_S = 0.06
_SEEN_AFTER_S = 0.1


class TriageScreen(EntryScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*TRIAGE]
    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    AUTO_FOCUS = "#list"

    def __init__(self, state: AppState, first: Snapshot, begin_at: str = "") -> None:
        self.model = TriageModel(first, read_look(state.look) if state.look else Look())
        self.tabs = {kind.name: kind(self.model) for kind in TABS}
        super().__init__(state, self.tabs["open"])
        self.read_only = first.read_only
        self.header, self.filter_line = StatusHeader(id="header"), FilterLine(id="filter")
        self.tab_bar = TabBar({name: tab.title for name, tab in self.tabs.items()}, id="tabs")
        self.chart = TrendChart(id="chart")
        self.pane = ListPane(self.chart, self.rows, id="pane")
        self.pulse: Pulse | None = None  # until the first is read
        self.window = Window.DAY
        self._begin_at = begin_at
        self._since, self.query_text = "", ""
        self._trail: list[Place] = []  # where one came from by links
        self._arriving: Place | None = None  # until its rows are there

    def compose(self) -> ComposeResult:
        yield from (self.header, self.tab_bar, self.filter_line)
        with Horizontal(id="body"):
            yield from (self.pane, self.detail)
        yield from (self.search, KeyBar())

    def on_mount(self) -> None:
        self.show()
        self.watch(self, "focused", self._arrange, init=False)
        self._read_queue()
        read_pulse = feeds.pulse_reader(self.state.source, self.model.look, self.state.clock)
        self._follow(read_pulse, self._show_pulse, _PULSE_S)
        self.set_interval(1.0, self.show)
        if self._begin_at:
            place = Subject(entry=self._begin_at).lead("entry", self.model.snapshot.entries)
            self.call_after_refresh(self._go, place)

    def on_unmount(self) -> None:
        if self.state.look is not None:
            seen_at = to_text(self.model.snapshot.taken_at)
            write_look(self.state.look, Look(seen_at, frozenset(self.model.new)))

    def _follow(
        self, read: Callable[[], feeds.Found], show: Callable[[feeds.Found], None], pause_s: float
    ) -> None:
        """Show what is read, in place of what the same method showed before."""
        following = feeds.follow(read, partial(self.call_later, show), pause_s)
        self.run_worker(following, group=show.__name__, exclusive=True)

    def _read_queue(self) -> None:
        source = self.state.source
        read = feeds.whenever(lambda: source.stamp(), lambda: source.read())
        self._follow(read, self._show_queue, _POLL_S)

    def _show_queue(self, snapshot: Snapshot) -> None:
        if critical := self.model.new_critical(snapshot):
            if self.state.bell:
                self.app.bell()
            self.notify_once("\n".join(f"critical: {words}" for words in critical[:3]), "error")
        self.model.update(snapshot)
        self.read_only = snapshot.read_only
        self.show()
        for screen in self.app.screen_stack:
            if isinstance(screen, Form):
                screen.show_changes(snapshot.entries)

    def _show_pulse(self, pulse: Pulse) -> None:
        if self.pulse is None:
            entries, now = self.model.snapshot.open_entries, self.state.clock()
            self._since = since_last_look(self.model.look, entries, pulse.closed_by, now)
        self.pulse = pulse
        self.show()

    def _read_tab(self, turns: Sequence[int] = ()) -> None:
        """Anew, and then whatever it comes to be while it is shown."""
        state, name = self.state, self.tab.name
        read = feeds.feed_reader(name, state.source, state.clock, self.window, turns)
        self._follow(read, self._show_feed, _FEED_S)

    def _show_feed(self, feed: feeds.Feed) -> None:
        """While paused nothing moves; but a tab that shows nothing yet is filled."""
        tab = self.tabs[feed.tab]
        if self.model.paused and tab.feed is not None:
            return
        if tab.feed is None:
            self.call_after_refresh(gc.freeze)  # a long past stays too: see Monitor.on_mount
        tab.feed = feed
        self.show()

    def apply_changes(self, entries: Sequence[Entry]) -> None:
        self.model.apply_changes(entries)
        self.show()

    def _arrange(self) -> None:
        self.detail.display = self.has_class("-wide") or self.is_reading
        for part in (self.header, self.tab_bar, self.pane):
            part.display = self.has_class("-wide") or not self.is_reading
        self._show_detail()

    def show(self) -> None:
        model, tab = self.model, self.tab
        rows = tab.rows(self.state.clock())
        empty = Content("") if rows else tab.why_empty()
        self.pane.show(rows, tab.columns, empty, tab.notice())
        self.chart.display = tab.name == TrendsTab.name
        self.chart.trends = tab.feed.trends if tab.feed else None
        pulse, title = self.pulse or Pulse(), self.state.source.title
        self.header.show(model.snapshot, pulse, title, model.pending_count, self._since)
        self.tab_bar.show(tab.name, {name: each.count_label() for name, each in self.tabs.items()})
        self._show_detail()
        self.refresh_bindings()
        if self._arriving is not None and rows:
            self._arrive(self._arriving)

    def _show_detail(self) -> None:
        """What is under the cursor or, while it is read, a newer version of the same."""
        if not self.detail.display:
            return
        if (entry := self.current()) is not None:
            entry = next((e for e in self.model.snapshot.entries if e["id"] == entry["id"]), entry)
            self.detail.show(entry, self.model.alike(entry), self.state.clock())
            return
        if (text := self.item.text()) or not self.is_reading:  # the row may be gone from the list
            self.detail.show_text(text, key=self.row)

    def on_resize(self) -> None:
        self.call_after_refresh(self._arrange)

    @on(RowList.Moved)
    def _cursor_moved(self) -> None:
        self.refresh_bindings()
        self._follow_cursor()

    @work(exclusive=True, group="cursor")
    async def _follow_cursor(self) -> None:
        await asyncio.sleep(_DETAIL_AFTER_S)
        self.call_later(self._show_detail)
        await asyncio.sleep(_SEEN_AFTER_S)
        self.call_later(self._see, self.has_class("-wide"))

    def _see(self, is_seen: bool) -> None:
        """With the detail in sight all entries of the row count as looked at."""
        if is_seen:
            self.model.new -= {entry["id"] for entry in self.entries_under_cursor()}

    @on(RowList.Chosen)
    def _open_detail(self) -> None:
        self.detail.display = True
        self._show_detail()
        if not self.is_typing:  # a key that came after Enter may have begun a search already
            self.set_focus(self.detail)
        self._see(is_seen=True)

    def action_next_match(self, steps: int) -> None:
        """Move by so many matches, from the last one on to the first."""
        rows = self.rows
        if not rows.rows:
            return
        rows.move_to((rows.cursor + steps) % len(rows.rows))
        if self.is_reading:
            self.detail.show_text((), key="")
            self._show_detail()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.is_typing:
            return False  # keys are letters
        if action == "leave":
            leads_back = bool(self._trail) or not self.rows.has_focus
            return leads_back is (parameters == ("back",))
        if action == "window":
            return self.tab.name == TrendsTab.name
        if action in _ON_THE_LIST and self.is_reading and not self.has_class("-wide"):
            return False  # it is not in sight
        applies: dict[str, Callable[[], object]] = {
            "go": lambda: self._link(str(parameters[0])),
            "sort": lambda: self.tab.name == "open",
            "fold": self._foldable,
            "mark": self.entries_under_cursor,
            "mark_all": self.entries_under_cursor,
            "next_match": lambda: self.rows.rows,
        }
        if action in applies:
            return bool(applies[action]()) or None
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        self._mark_row()
        self.rows.action_move(1)

    @on(RowList.MarkClicked)
    def _mark_row(self) -> None:
        self.tab.toggle_marks(self.entries_under_cursor())
        self.show()

    def action_mark_all(self) -> None:
        self.tab.toggle_marks(self.tab.shown_entries())
        self.show()

    def action_sort(self, by: str) -> None:
        self.model.sort(Sort(by))
        self.show()

    def _foldable(self) -> str:
        """The cause of the row, if several entries have it."""
        cause = next((entry["fingerprint"] for entry in self.entries_under_cursor()), "")
        return cause if len(self._item(cause).entries) > 1 else ""

    def action_fold(self) -> None:
        """The cursor goes from an entry that is folded to its cause."""
        cause = self._foldable()
        self.model.unfolded ^= {cause}
        self.show()
        self.rows.move_to_key(cause)

    def action_pause(self) -> None:
        self.model.toggle_pause()
        self.show()
        if not self.model.paused:
            self._read_tab()

    def action_refresh(self) -> None:
        """Read everything anew, as if every file had changed; the screen too."""
        self._read_queue()
        self._read_tab()
        self.refresh(layout=True)

    def action_window(self) -> None:
        """The next longer one, and after the longest the shortest."""
        windows = list(Window)
        self.window = windows[(windows.index(self.window) + 1) % len(windows)]
        self._read_tab()

    def action_tab(self, steps: int) -> None:
        names = list(self.tabs)
        self.action_tab_to(names[(names.index(self.tab.name) + steps) % len(names)])

    def action_tab_to(self, name: str) -> None:
        self._trail.clear()
        self._to_tab(name)

    def _to_tab(self, name: str, place: Place | None = None) -> None:
        self.tab.cursor_key = self.rows.cursor_key or ""
        self.tab, self._arriving = self.tabs[name], place
        self.rows.begin_at(self.tab.cursor_key, follow=self.tab.follow)
        self._read_tab(place.turns if place else ())
        self._focus_list()
        self.show()

    def _focus_list(self) -> None:
        self.pane.display = True  # what is not shown cannot have the keys
        self.set_focus(self.rows)

    def _link(self, to: str) -> Place | None:
        entry = self.current()
        subject = self.item.subject
        if entry:
            subject = Subject(turns_of(entry), fingerprint=entry["fingerprint"])
        place = subject.lead(to, self.model.snapshot.entries)
        return place if to != self.tab.name else None  # where it is already

    def action_go(self, to: str) -> None:
        if place := self._link(to):
            row = self.rows.cursor_key or ""
            self._trail.append(Place(self.tab.name, self.model.query.text, row, self.is_reading))
            self._go(place)

    def _go(self, place: Place) -> None:
        self._filter(place.query)
        self.model.unfolded.add(place.unfolded)
        self._to_tab(place.tab, place)

    def _arrive(self, place: Place) -> None:
        self._arriving = None
        if place.row:
            self.rows.move_to_key(place.row)
        if place.reading:
            self.detail.show_text((), key="")  # it is about another row now
            self._open_detail()

    def action_filter(self) -> None:
        self.search.open(self.rows, self.query_text, _EXAMPLE, self._filter)

    def _filter(self, text: str) -> None:
        self.query_text = text.strip()
        try:
            self.model.filter(text)
            problem = "; ".join(self.model.query.remarks)
        except QueryError as error:
            problem = f"{error}: {error.hint}"
        way_out = "esc goes back" if self._trail else "esc clears it"
        self.filter_line.show(self.query_text, problem, way_out)
        self.show()

    def action_back(self) -> None:
        """One level: to where a link was followed; from the detail to the list, then the filter,
        then the marks."""
        if self._trail:
            self._go(self._trail.pop())
        elif not self.rows.has_focus:
            self._focus_list()
        elif self.query_text:
            self._filter("")
        else:
            if not self.tab.marked:
                self._since = ""
            self.tab.marked.clear()
            self.show()

    def action_leave(self, where: str) -> None:
        """The same key goes back as long as there is something to go back to."""
        if where == "back":
            self.action_back()
        else:
            self.app.exit()
