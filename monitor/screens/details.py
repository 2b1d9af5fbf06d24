"""Where what is under the cursor is told whole: in the column beside the list, or on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.timer import Timer

from interventions.entry import Entry
from monitor.messages import BackgroundRead
from monitor.screens.detail import DetailScreen
from monitor.screens.text import TextScreen
from monitor.widgets.detail_view import DetailView

if TYPE_CHECKING:
    from monitor.screens.triage import TriageScreen

# A key that is held down moves the cursor only; the detail comes when it rests.
_SHOW_S = 0.06
_READ_S = 0.15


class Details:
    def __init__(self, screen: TriageScreen) -> None:
        self._screen = screen
        self._page: DetailScreen | None = None
        self._settling: tuple[Timer, ...] = ()

    @property
    def column(self) -> DetailView:
        return self._screen.query_one("#detail", DetailView)

    @property
    def wide(self) -> bool:
        return self._screen.has_class("-wide")

    def follow(self) -> None:
        """The cursor moved on: show what it came to, and read what belongs to it."""
        for timer in self._settling:
            timer.stop()
        self._settling = (
            self._screen.set_timer(_SHOW_S, self.show),
            self._screen.set_timer(_READ_S, self._settled),
        )

    def _settled(self) -> None:
        entry = self._screen.current()
        if entry is None:
            return
        self._screen.read_background(entry["id"])
        if self.wide:
            self._screen.looked_at()

    def show(self) -> None:
        """In the column what is under the cursor; on a page the entry that it is about."""
        screen, now = self._screen, self._screen.clock()
        if self.wide and screen.tab.of_entries:
            entry = screen.current()
            self.column.show(entry, screen.model.alike(entry) if entry else [], now)
        elif self.wide:
            row = screen.rows.cursor_key or ""
            self.column.show_text(screen.text(row), key=row)
        page = self._page
        if page in screen.app.screen_stack and page.view.entry is not None:
            shown = screen.model.find(page.view.entry["id"]) or page.view.entry
            page.show_entry(shown, screen.model.alike(shown), now)

    def add(self, read: BackgroundRead) -> None:
        self.column.add_background(read.intervention_id, read.background)
        if self._page is not None:
            self._page.view.add_background(read.intervention_id, read.background)
        self.show()

    def open(self, entry: Entry | None, row: str) -> None:
        """The column, or a page of an entry or, without one, of a row that is none."""
        screen = self._screen
        if self.wide:
            self.column.focus()
        elif entry is not None:
            screen.looked_at()
            self._page = DetailScreen(screen, entry, screen.model.alike(entry), screen.clock())
            screen.app.push_screen(self._page)
            screen.read_background(entry["id"])
        elif not screen.tab.of_entries:
            screen.app.push_screen(TextScreen(screen, row))
