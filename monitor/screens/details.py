"""Where what is under the cursor is told whole: in the column beside the list, or on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interventions.entry import Entry
from monitor.messages import BackgroundRead
from monitor.screens.detail import DetailScreen
from monitor.screens.text import TextScreen
from monitor.widgets.detail_view import DetailView

if TYPE_CHECKING:
    from monitor.screens.triage import TriageScreen


class Details:
    def __init__(self, screen: TriageScreen) -> None:
        self._screen = screen
        self._page: DetailScreen | None = None

    @property
    def column(self) -> DetailView:
        return self._screen.query_one("#detail", DetailView)

    @property
    def wide(self) -> bool:
        return self._screen.has_class("-wide")

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
        """A page of an entry or, without one, of a row that is none."""
        screen = self._screen
        if entry is not None:
            self._page = DetailScreen(screen, entry, screen.model.alike(entry), screen.clock())
            screen.app.push_screen(self._page)
            screen.read_background(entry["id"])
        elif not screen.tab.of_entries:
            screen.app.push_screen(TextScreen(screen, row))
