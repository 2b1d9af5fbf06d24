"""One entry, whole, in a column that scrolls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from interventions.entry import Entry
from monitor.detail_text import detail
from monitor.keys import SCROLLS
from monitor.snapshot import Background


class DetailView(VerticalScroll, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [*SCROLLS]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.entry: Entry | None = None
        self._background: dict[str, Background] = {}
        self._text = Static(id="detail-text", markup=False)
        self._shown: object = None
        self._shown_id = ""

    def compose(self) -> ComposeResult:
        yield self._text

    def show(self, entry: Entry | None, others: Sequence[Entry], now: datetime) -> None:
        """The same entry in a newer version keeps the place that was scrolled to."""
        entry_id = entry["id"] if entry else ""
        moved = entry_id != self._shown_id
        self.entry, self._shown_id = entry, entry_id
        background = self._background.get(entry_id, Background())
        # Ages are in minutes at best: text of the same minute is the same text.
        minute = now.replace(second=0, microsecond=0)
        shown = (entry, [one["id"] for one in others], background, minute)
        if shown != self._shown:
            self._shown = shown
            if entry is None:
                self._text.update("")
            else:
                self._text.update(detail(entry, others, background, now))
        if moved:
            self.scroll_home(animate=False)

    def show_text(self, text: Content, *, key: str) -> None:
        """Something that is no entry; a newer text of the same keeps the place."""
        moved, self._shown_id = key != self._shown_id, key
        if text != self._shown:
            self.entry, self._shown = None, text
            self._text.update(text)
        if moved:
            self.scroll_home(animate=False)

    def add_background(self, intervention_id: str, background: Background) -> None:
        """Kept for the entry that is shown alone; it is read again when the entry changes."""
        self._background = {intervention_id: background}

    def has_background_of(self, intervention_id: str) -> bool:
        return intervention_id in self._background

    def action_scroll_half(self, direction: int) -> None:
        self.scroll_relative(y=direction * self.size.height // 2, animate=False)
