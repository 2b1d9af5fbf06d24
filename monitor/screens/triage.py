"""The screen one lives in: header, tabs and lists, and the detail: beside them, or in their place
where the terminal is too narrow for both."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Input

from interventions.entry import Entry
from interventions.errors import QueryError
from interventions.health import Window
from monitor.core.app_state import AppState
from monitor.core.links import Place, Subject
from monitor.core.looked import Look, read_look, since_last_look, write_look
from monitor.core.model import Sort, TriageModel
from monitor.core.snapshot import Pulse, Snapshot
from monitor.forms.form import Form
from monitor.screens.entry_tabs import HistoryTab, OpenTab
from monitor.screens.log_tab import LogTab
from monitor.screens.readers import BackgroundRead, FeedRead, PulseRead, QueueRead, ReaderScreen
from monitor.screens.tab import Tab, notice
from monitor.screens.trends_tab import TrendsTab
from monitor.screens.turns_tab import TurnsTab
from monitor.widgets.detail_view import DetailView
from monitor.widgets.header import FilterBar, StatusHeader, TabBar
from monitor.widgets.key_footer import KeyFooter
from monitor.widgets.keys import TRIAGE, in_order
from monitor.widgets.row_list import ListPane, RowList
from monitor.widgets.trends_view import TrendChart

TABS: tuple[type[Tab], ...] = (OpenTab, HistoryTab, TurnsTab, LogTab, TrendsTab)
_ON_THE_LIST = ("mark", "mark_all", "sort", "fold")
_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
# A key that is held down moves the cursor only; the detail comes when it rests.
_DETAIL_AFTER_S = 0.06
_BACKGROUND_AFTER_S = 0.15


class TriageScreen(ReaderScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*TRIAGE]
    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    AUTO_FOCUS = "#open-list"

    def __init__(self, state: AppState, first: Snapshot, begin_at: str = "") -> None:
        super().__init__(state)
        self._begin_at = begin_at
        self.model = TriageModel(first, read_look(state.look) if state.look else Look())
        self.pulse: Pulse | None = None  # until the first is read
        self._since = ""
        self.read_only = first.read_only
        self.tabs = {kind.name: kind(self.model) for kind in TABS}
        self.tab = self.tabs["open"]
        self._panes: dict[str, ListPane] = {}
        self._detail_timers: tuple[Timer, ...] = ()
        self._trail: list[Place] = []  # where one came from by links
        self._arriving: Place | None = None  # until its rows are there

    def compose(self) -> ComposeResult:
        yield StatusHeader(id="header")
        yield TabBar({name: tab.title for name, tab in self.tabs.items()}, id="tabs")
        yield FilterBar(id="filter")
        with Horizontal(id="body"):
            with ContentSwitcher(initial="pane-open", id="panes"):
                yield self._pane()
            yield DetailView(id="detail")
        yield KeyFooter(show_command_palette=False, compact=True)

    def _pane(self) -> ListPane:
        """That of the tab, made when it is first shown."""
        name, tab = self.tab.name, self.tab
        if name not in self._panes:
            above = TrendChart(id="chart") if name == TrendsTab.name else None
            self._panes[name] = ListPane(name, tab.columns, follow=tab.follow, above=above)
        return self._panes[name]

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        return in_order(super().active_bindings)

    def on_mount(self) -> None:
        self.show()
        self.watch(self, "focused", self._arrange, init=False)
        self.read_queue()
        self.read_pulse(self.model.look)
        self.set_interval(1.0, self.show)
        if self._begin_at:
            place = Subject(entry=self._begin_at).lead("entry", self.model.snapshot.entries)
            self.call_after_refresh(self._go, place)

    def on_unmount(self) -> None:
        super().on_unmount()
        if self.state.look is not None:
            write_look(self.state.look, self.model.look_now)

    def on_pulse_read(self, message: PulseRead) -> None:
        first, self.pulse = self.pulse is None, message.pulse
        if first:
            entries, now = self.model.snapshot.open_entries, self.state.clock()
            closed = message.pulse.closed_by
            self._since = since_last_look(self.model.look, entries, closed, now)
        self.show()

    def on_queue_read(self, message: QueueRead) -> None:
        before = self.current()
        if critical := self.model.new_critical(message.snapshot):
            if self.state.bell:
                self.app.bell()
            self.notify_once("\n".join(f"critical: {words}" for words in critical[:3]), "error")
        self.model.update(message.snapshot)
        self.read_only = message.snapshot.read_only
        self.show()
        now = self.current()
        if before and now and before["id"] == now["id"] and before["version"] != now["version"]:
            # Somebody did something: it is in the journal.
            self.read_background(now, changes=self.is_reading)
        for screen in self.app.screen_stack:
            if isinstance(screen, Form):
                screen.show_changes(message.snapshot.entries)

    def on_feed_read(self, message: FeedRead) -> None:
        """While paused nothing moves; but a tab that shows nothing yet is filled."""
        tab = self.tabs[message.feed.tab]
        if self.model.paused and tab.feed is not None:
            return
        if tab.feed is None:
            self.call_after_refresh(gc.freeze)  # a long past stays too: see Monitor.on_mount
        tab.feed = message.feed
        self.show()

    def on_background_read(self, message: BackgroundRead) -> None:
        self.detail.add_background(message.intervention_id, message.background)
        self._show_detail()

    def apply_changes(self, entries: Sequence[Entry]) -> None:
        self.model.apply_changes(entries)
        self.show()

    # What is shown

    @property
    def rows(self) -> RowList:
        return self._pane().list

    @property
    def _is_wide(self) -> bool:
        return self.has_class("-wide")

    def _arrange(self) -> None:
        self.detail.display = self._is_wide or self.is_reading
        for part in ("#header", "#tabs", "#panes"):
            self.query_one(part).display = self._is_wide or not self.is_reading
        self._show_detail()

    def show(self) -> None:
        model, tab = self.model, self.tab
        rows = tab.rows(self.state.clock())
        of_open = tab.name == "open" and self.state.source.queue is not None
        self._pane().show(
            rows,
            tab.columns,
            tab.why_empty(),
            notice=notice(model.snapshot, tab.truncated_note(), of_open=of_open) if rows else "",
        )
        if isinstance(tab, TrendsTab):
            self.query_one(TrendChart).show(tab.feed.trends if tab.feed else None)
        title = self.state.source.title
        header, pending = self.query_one(StatusHeader), model.pending_count
        header.show(model.snapshot, self.pulse or Pulse(), title, pending, self._since)
        counts = {name: each.count_label() for name, each in self.tabs.items()}
        self.query_one(TabBar).show(tab.name, counts)
        self._show_detail()
        self.update_keys()
        if self._arriving is not None and rows:
            self._arrive(self._arriving)

    def _show_detail(self) -> None:
        """What is under the cursor or, while it is read, a newer version of the same."""
        if not self.detail.display:
            return
        if self.tab.of_entries:
            entry = self.current()
            if entry is not None:
                entry = self.model.find(entry["id"]) or entry
            others = self.model.alike(entry) if entry else []
            self.detail.show(entry, others, self.state.clock())
        else:
            text = self.row_text()
            if text or not self.is_reading:  # the row may be gone from the list
                self.detail.show_text(text, key=self.row)

    def on_resize(self) -> None:
        self.call_after_refresh(self._arrange)

    # The cursor

    @on(RowList.Moved)
    def _cursor_moved(self) -> None:
        for timer in self._detail_timers:
            timer.stop()
        self._detail_timers = (
            self.set_timer(_DETAIL_AFTER_S, self._show_detail),
            self.set_timer(_BACKGROUND_AFTER_S, self._cursor_rests),
        )
        self.update_keys()

    def _cursor_rests(self) -> None:
        entry = self.current()
        if entry is None:
            return
        self.read_background(entry, changes=self.is_reading)
        if self._is_wide:
            self._clear_new()

    def _clear_new(self) -> None:
        """The detail is on the screen: all entries of the row count as looked at."""
        self.model.new -= {entry["id"] for entry in self.entries_under_cursor()}

    @on(RowList.Chosen)
    def _open_detail(self) -> None:
        if isinstance(self.focused, Input):
            return  # somebody types already: the words would be keys
        self.detail.display = True
        self._show_detail()
        self.set_focus(self.detail)
        self._clear_new()
        if (entry := self.current()) is not None:
            self.read_background(entry, changes=self.is_reading)

    def action_next_match(self, steps: int) -> None:
        """From the last to the first."""
        rows = self.rows
        if not rows.rows:
            return
        rows.move_to((rows.cursor + steps) % len(rows.rows))
        if self.is_reading:
            self.detail.show_text((), key="")
            self._show_detail()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter":  # in the input a slash is a letter
            return not isinstance(self.focused, Input)
        if action == "go":
            return self._link(str(parameters[0])) is not None or None
        if action == "window":
            return self.tab.name == TrendsTab.name
        if action in _ON_THE_LIST and self.is_reading and not self._is_wide:
            return False  # it is not in sight
        if action == "sort":
            return self.tab.name == "open" or None
        if action == "fold":
            return bool(self._foldable(str(parameters[0]))) or None
        if action in ("mark", "mark_all"):
            return bool(self.tab.of_entries and self.rows.rows) or None
        if action == "next_match":
            return bool(self.rows.rows) or None
        return super().check_action(action, parameters)

    # Marks, order, pause

    def action_mark(self) -> None:
        self._mark_row()
        self.rows.action_move(1)

    @on(RowList.MarkClicked)
    def _mark_row(self) -> None:
        self.tab.toggle_marks(self.entries_under_cursor())
        self.show()

    def action_mark_all(self) -> None:
        self.tab.toggle_marks(self.tab.shown_entries(self.state.clock()))
        self.show()

    def action_sort(self, by: str) -> None:
        self.model.sort(Sort(by))
        self.show()

    def _foldable(self, whose: str) -> set[str]:
        return self.tab.causes("" if whose == "all" else self.rows.cursor_key or "-")

    def action_fold(self, whose: str) -> None:
        """The cursor goes from an entry that is folded to its cause."""
        entry = self.current()
        self.model.toggle_fold(self._foldable(whose))
        self.show()
        self.rows.move_to_key(entry["fingerprint"] if entry else "")

    def action_pause(self) -> None:
        self.model.toggle_pause()
        self.show()
        if not self.model.paused:
            self._read_tab()

    def _read_tab(self, turns: Sequence[int] = ()) -> None:
        """Anew, and then whatever it comes to be."""
        if self.tab.name == "open":
            self.workers.cancel_group(self, "feed")
        else:
            self.read_feed(self.tab.name, turns)

    def action_refresh(self) -> None:
        """Read everything anew, as if every file had changed; the screen too."""
        self.read_queue()
        self._read_tab()
        self.refresh(layout=True)

    def action_window(self) -> None:
        """The next longer one, and after the longest the shortest."""
        windows = list(Window)
        self.window = windows[(windows.index(self.window) + 1) % len(windows)]
        self.read_feed(TrendsTab.name)

    # Tabs, filter, the way back

    async def action_tab(self, steps: int) -> None:
        names = list(self.tabs)
        await self.action_tab_to(names[(names.index(self.tab.name) + steps) % len(names)])

    async def action_tab_to(self, name: str) -> None:
        self._trail.clear()
        await self._to_tab(name)

    async def _to_tab(self, name: str, place: Place | None = None) -> None:
        self._arriving = None
        self.tab = self.tabs[name]
        panes, pane = self.query_one("#panes", ContentSwitcher), self._pane()
        if not pane.is_attached:
            pane.display = False
            await panes.mount(pane)
        panes.current = pane.id
        self._read_tab(place.turns if place else ())
        self._focus_list()
        self._arriving = place
        self.show()

    def _focus_list(self) -> None:
        self.query_one("#panes").display = True  # what is not shown cannot have the keys
        self.set_focus(self.rows)

    # Links

    def _link(self, to: str) -> Place | None:
        place = self.tab.subject(self.row).lead(to, self.model.snapshot.entries)
        return place if to != self.tab.name else None  # where it is already

    async def action_go(self, to: str) -> None:
        place = self._link(to)
        if place is not None:
            row = self.rows.cursor_key or ""
            here = Place(self.tab.name, self.model.view.query.text, row, self.is_reading)
            self._trail.append(here)
            await self._go(place)

    async def _go(self, place: Place) -> None:
        self.model.filter(place.query)
        self.model.unfold(place.unfolded)
        self.query_one(FilterBar).show_query(place.query)
        await self._to_tab(place.tab, place)

    def _arrive(self, place: Place) -> None:
        self._arriving = None
        if place.row:
            self.rows.move_to_key(place.row)
        if place.reading:
            self.detail.show_text((), key="")  # it is about another row now
            self._open_detail()

    def action_filter(self) -> None:
        self.query_one(FilterBar).open()

    @on(Input.Changed, "#filter-text")
    def _filter_edited(self, message: Input.Changed) -> None:
        try:
            self.model.filter(message.value)
            problem = "; ".join(self.model.view.query.remarks)
        except QueryError as error:
            problem = f"{error}: {error.hint}"
        self.query_one(FilterBar).show_problem(problem)
        self.show()

    @on(Input.Submitted, "#filter-text")
    def _filter_done(self, message: Input.Submitted) -> None:
        self.query_one(FilterBar).display = bool(message.value.strip())
        self._focus_list()

    def action_clear_filter(self) -> None:
        self.query_one("#filter-text", Input).value = ""
        self.query_one(FilterBar).display = False
        self._focus_list()

    async def action_back(self) -> None:
        """One level: to where a link was followed; from the detail to the list, then the filter,
        then the marks."""
        if self._trail:
            await self._go(self._trail.pop())
        elif not self.rows.has_focus:
            self._focus_list()
        elif self.query_one(FilterBar).display:
            self.action_clear_filter()
        else:
            if not self.tab.marked:
                self._since = ""
            self.tab.marked.clear()
            self.show()

    async def action_leave(self) -> None:
        if not self.rows.has_focus:
            self._focus_list()
        elif self._trail:
            await self.action_back()
        else:
            self.app.exit()
