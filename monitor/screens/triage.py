"""The screen one lives in: header, tabs, the lists, and beside them the detail if there is room."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import ContentSwitcher

from interventions.entry import Entry
from interventions.errors import QueryError
from monitor.core.listing import SORT_COLUMN, Sort
from monitor.core.model import Model
from monitor.core.snapshot import Snapshot
from monitor.core.source import Clock, Source
from monitor.forms.form import Form
from monitor.keys import ACTS, HELP, LEAVE, LISTS
from monitor.messages import BackgroundRead, FeedRead, QueueRead
from monitor.panes import TABS, Tab
from monitor.panes.list_pane import ListPane
from monitor.screens.details import Details
from monitor.screens.reading import ReadingScreen
from monitor.states import notice
from monitor.widgets.detail_view import DetailView
from monitor.widgets.filter_bar import FilterBar
from monitor.widgets.key_bar import KeyBar
from monitor.widgets.row_list import RowList
from monitor.widgets.status_header import StatusHeader
from monitor.widgets.tab_bar import TabBar

_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]


class TriageScreen(ReadingScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*HELP, *ACTS, *LISTS, *LEAVE]
    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    AUTO_FOCUS = "#open-list"

    def __init__(self, source: Source, first: Snapshot, clock: Clock) -> None:
        super().__init__(source, clock)
        self.model = Model(first)
        self.read_only = first.read_only
        self.tabs: dict[str, Tab] = {name: kind(self.model) for name, kind in TABS.items()}
        self.tab = self.tabs["open"]
        self.details = Details(self)

    def compose(self) -> ComposeResult:
        yield StatusHeader(id="header")
        yield TabBar({name: tab.title for name, tab in self.tabs.items()}, id="tabs")
        yield FilterBar(id="filter")
        with Horizontal(id="body"):
            with ContentSwitcher(initial="pane-open", id="panes"):
                for name, tab in self.tabs.items():
                    yield ListPane(name, tab.columns, follow=tab.follow)
            yield DetailView(id="detail")
        yield KeyBar()

    def on_mount(self) -> None:
        self.show()
        self.watch_queue()
        self.set_interval(1.0, self.show)

    def on_queue_read(self, message: QueueRead) -> None:
        before = self.current()
        self.model.take(message.snapshot)
        self.read_only = message.snapshot.read_only
        self.show()
        now = self.current()
        if before and now and before["id"] == now["id"] and before["version"] != now["version"]:
            self.read_background(now["id"])  # somebody did something: it is in the journal
        for screen in self.app.screen_stack:
            if isinstance(screen, Form):
                screen.saw(message.snapshot.entries)

    def on_feed_read(self, message: FeedRead) -> None:
        """While paused it is held like the queue; but a tab that shows nothing yet is filled."""
        tab = self.tabs[message.feed.tab]
        if self.model.paused and tab.feed is not None:
            tab.held = message.feed
            return
        if tab.feed is None:
            self.call_after_refresh(gc.freeze)  # a long past stays too: see Monitor.on_mount
        tab.feed = message.feed
        self.show()

    def on_background_read(self, message: BackgroundRead) -> None:
        self.details.add(message)

    def patched(self, entries: Sequence[Entry]) -> None:
        self.model.patch(entries)
        self.show()

    @property
    def rows(self) -> RowList:
        return self.query_one(f"#{self.tab.name}-list", RowList)

    @property
    def detail(self) -> DetailView:
        return self.details.column

    def show(self) -> None:
        model, tab = self.model, self.tab
        rows = tab.rows(self.clock())
        of_open = tab.name == "open" and self.source.queue is not None
        self.query_one(f"#pane-{tab.name}", ListPane).show(
            rows,
            tab.why_empty(),
            sorted_title=SORT_COLUMN[model.view.sort] if tab.name == "open" else "",
            notice=notice(model.snapshot, tab.more(), of_open=of_open) if rows else "",
        )
        self.query_one(StatusHeader).show(model.snapshot, self.source.title, model.held_back)
        self.query_one(TabBar).show(
            tab.name, {name: each.remark() for name, each in self.tabs.items()}
        )
        self.details.show()
        self.check_keys()

    def on_resize(self) -> None:
        self.call_after_refresh(self.details.show)

    def current(self) -> Entry | None:
        under = self.tab.entries(self.rows.cursor_key or "")
        return under[0] if under else None

    def targets(self) -> list[Entry]:
        return self.tab.marked_entries() or list(self.tab.entries(self.rows.cursor_key or ""))

    def remark(self) -> str:
        hidden = self.tab.marked_and_hidden(self.clock())
        return f"{hidden} of them are marked but not shown by the filter" if hidden else ""

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.details.follow()
        self.check_keys()

    def looked_at(self) -> None:
        """All that the row under the cursor stands for is no longer new."""
        self.model.new -= {entry["id"] for entry in self.tab.entries(self.rows.cursor_key or "")}

    @on(RowList.Chosen)
    def _chosen(self, message: RowList.Chosen) -> None:
        self.details.open(next(iter(self.tab.entries(message.key)), None), message.key)

    def text(self, row: str) -> Content:
        """A row that is no entry, whole."""
        return self.tab.text(row)

    def step_row(self, steps: int) -> str:
        """To the next that matches, and from the last to the first; the key of the row there."""
        rows = self.rows
        if rows.rows:
            rows.move_to((rows.cursor + steps) % len(rows.rows))
        return rows.cursor_key or ""

    def step(self, steps: int) -> Entry | None:
        """The entry there now."""
        self.step_row(steps)
        entry = self.current()
        if entry is not None:
            self.read_background(entry["id"])
        return entry

    def action_next_match(self, steps: int) -> None:
        self.step(steps)

    def action_mark(self) -> None:
        if not self._can_mark():
            return
        self.tab.mark(self.rows.cursor_key or "")
        self.show()
        self.rows.action_move(1)

    @on(RowList.Ticked)
    def _ticked(self, message: RowList.Ticked) -> None:
        self.tab.mark(message.key)
        self.show()

    def _can_mark(self) -> bool:
        if not self.tab.of_entries:
            self.tell("marks are for interventions, in Open and History: nothing is done to these")
        return self.tab.of_entries

    def action_mark_all(self) -> None:
        if not self._can_mark():
            return
        self.tab.mark_all(self.clock())
        self.show()

    def action_sort(self, by: str) -> None:
        self.model.sort(Sort(by))
        self.show()

    @on(RowList.HeadClicked)
    def _head_clicked(self, message: RowList.HeadClicked) -> None:
        for sort, title in SORT_COLUMN.items():
            if title == message.title and self.tab.name == "open":
                self.action_sort(sort)

    def action_fold(self) -> None:
        key = self.model.fold(self.current())
        self.show()
        self.rows.move_to_key(key)

    def action_pause(self) -> None:
        self.model.pause()
        if not self.model.paused:
            for tab in self.tabs.values():
                tab.feed, tab.held = tab.held or tab.feed, None
        self.show()

    def action_refresh(self) -> None:
        """Read everything anew, as if every file had changed; the screen too."""
        self.watch_queue()
        if self.tab.name != "open":
            self.follow(self.tab.name)
        self.refresh(layout=True)

    def action_tab(self, steps: int) -> None:
        names = list(self.tabs)
        self.action_tab_to(names[(names.index(self.tab.name) + steps) % len(names)])

    @on(TabBar.Picked)
    def _picked(self, message: TabBar.Picked) -> None:
        self.action_tab_to(message.tab)

    def action_tab_to(self, name: str) -> None:
        self.tab = self.tabs[name]
        self.query_one("#panes", ContentSwitcher).current = f"pane-{name}"
        if name == "open":
            self.workers.cancel_group(self, "feed")
        else:
            self.follow(name)
        self.show()
        self.rows.focus()

    def action_filter(self) -> None:
        self.query_one(FilterBar).open()

    @on(FilterBar.Typed)
    def _typed(self, message: FilterBar.Typed) -> None:
        bar = self.query_one(FilterBar)
        try:
            self.model.filter(message.text)
        except QueryError as error:
            bar.say(f"{error}: {error.hint}")
        else:
            bar.say("")
        self.show()

    @on(FilterBar.Done)
    def _filter_done(self) -> None:
        self.rows.focus()

    def action_back(self) -> None:
        """One level: from the detail to the list, then the filter, then the marks."""
        if not self.rows.has_focus:
            self.rows.focus()
        elif self.query_one(FilterBar).display:
            self.query_one(FilterBar).action_clear()
        elif self.tab.unmark():
            self.show()

    def action_leave(self) -> None:
        if self.rows.has_focus:
            self.app.exit()
        else:
            self.rows.focus()
