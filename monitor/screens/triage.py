"""The screen one lives in: header, tabs, the lists, and beside them the detail if there is room."""

from __future__ import annotations

import threading
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Footer
from textual.worker import get_current_worker

from interventions.entry import Entry
from interventions.errors import QueueError
from monitor.keys import LEAVE, LISTS
from monitor.listing import OPEN_COLUMNS, SORT_COLUMN, Group, open_row
from monitor.messages import BackgroundRead, QueueRead
from monitor.model import Model
from monitor.panes.list_pane import ListPane
from monitor.screens.acting import ActingScreen
from monitor.screens.detail import DetailScreen
from monitor.snapshot import Background, Snapshot
from monitor.source import Clock, Source
from monitor.states import why_empty
from monitor.widgets.detail_view import DetailView
from monitor.widgets.row_list import RowList
from monitor.widgets.status_header import StatusHeader
from monitor.widgets.tab_bar import TabBar

_POLL_S = 0.1
_SETTLE_S = 0.06
_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]


class TriageScreen(ActingScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*LISTS, *LEAVE]
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (110, "-wide"),
    ]
    AUTO_FOCUS = "#open-list"

    def __init__(self, source: Source, first: Snapshot, clock: Clock) -> None:
        super().__init__(source)
        self.model = Model(first)
        self.clock = clock
        self._stop = threading.Event()
        self._settling: Timer | None = None
        self._detail_screen: DetailScreen | None = None
        self._groups: list[Group] = []

    def compose(self) -> ComposeResult:
        yield StatusHeader(id="header")
        yield TabBar(id="tabs")
        with Horizontal(id="body"):
            with ContentSwitcher(initial="pane-open", id="panes"):
                yield ListPane("open", OPEN_COLUMNS)
            yield DetailView(id="detail")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self._watch()
        self.set_interval(1.0, self._show)

    def on_unmount(self) -> None:
        self._stop.set()

    # -- the queue, as it changes ----------------------------------------------------------------

    @work(thread=True, exclusive=True, group="watch")
    def _watch(self) -> None:
        worker, last = get_current_worker(), None
        while not worker.is_cancelled and not self._stop.is_set():
            mark = self.source.mark()
            if mark != last:
                last = mark
                self.post_message(QueueRead(self.source.read()))
            self._stop.wait(_POLL_S)

    def on_queue_read(self, message: QueueRead) -> None:
        self.model.take(message.snapshot)
        self._show()

    @work(thread=True, exclusive=True, group="background", exit_on_error=False)
    def _read_background(self, intervention_id: str) -> None:
        try:
            background = self.source.background(intervention_id)
        except QueueError:
            background = Background()  # the list says what is the matter with the queue
        self.post_message(BackgroundRead(intervention_id, background))

    def on_background_read(self, message: BackgroundRead) -> None:
        for view in self._detail_views():
            view.add_background(message.intervention_id, message.background)
        self._show_detail()

    # -- showing ---------------------------------------------------------------------------------

    @property
    def rows(self) -> RowList:
        return self.query_one("#open-list", RowList)

    def _show(self) -> None:
        now, model = self.clock(), self.model
        self._groups = model.groups(now)
        rows = [open_row(group, now, new=model.new, marked=model.marked) for group in self._groups]
        trouble = model.snapshot.trouble
        notice = f"{trouble.what}\n{trouble.todo}" if trouble and rows else ""
        self.query_one("#pane-open", ListPane).show(
            rows,
            why_empty(model.snapshot, model.view.query.text),
            sorted_title=SORT_COLUMN[model.view.sort],
            notice=notice,
        )
        self.query_one(StatusHeader).show(model.snapshot, self.source.title, model.held_back)
        self.query_one(TabBar).show("open", {"open": str(len(model.snapshot.open_entries))})
        self._show_detail()

    def _show_detail(self) -> None:
        entry, now = self.current(), self.clock()
        if self.has_class("-wide"):
            others = self.model.alike(entry) if entry else []
            self.query_one("#detail", DetailView).show(entry, others, now)
        above = self._detail_screen
        if above is not None and above.is_mounted and above.view.entry is not None:
            entry = self.model.find(above.view.entry["id"]) or above.view.entry
            above.view.show(entry, self.model.alike(entry), now)

    def _detail_views(self) -> list[DetailView]:
        above = self._detail_screen
        views = [self.query_one("#detail", DetailView)]
        return [*views, above.view] if above is not None else views

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_detail)

    # -- the cursor ------------------------------------------------------------------------------

    def group(self) -> Group | None:
        key = self.rows.cursor_key
        return next((group for group in self._groups if group.key == key), None)

    def current(self) -> Entry | None:
        group = self.group()
        return group.first if group else None

    def targets(self) -> list[Entry]:
        group = self.group()
        return list(group.entries) if group else []

    def on_row_list_moved(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(_SETTLE_S, self._settled)
        self._show_detail()

    def _settled(self) -> None:
        entry = self.current()
        if entry is not None:
            self._read_background(entry["id"])

    def on_row_list_chosen(self) -> None:
        entry = self.current()
        if entry is None:
            return
        self.model.new.discard(entry["id"])
        if self.has_class("-wide"):
            self.query_one("#detail", DetailView).focus()
            return
        self._detail_screen = DetailScreen(
            self.source, entry, self.model.alike(entry), self.clock()
        )
        self.app.push_screen(self._detail_screen)
        self._read_background(entry["id"])

    # -- keys ------------------------------------------------------------------------------------

    def action_back(self) -> None:
        if not self.rows.has_focus:
            self.rows.focus()

    def action_leave(self) -> None:
        if self.rows.has_focus:
            self.app.exit()
        else:
            self.rows.focus()
