"""One entry, whole, in a column that scrolls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.visual import Visual

from interventions.entry import Entry
from interventions.timestamps import from_text
from monitor.core.row_cache import rounded
from monitor.core.snapshot import Background
from monitor.detail_text import detail
from monitor.keys import SCROLLS
from monitor.widgets.lines import Lines
from monitor.wrapping import wrapped

_SIDEWAYS = 8


class DetailView(Lines):
    BINDINGS: ClassVar[list[BindingType]] = [*SCROLLS]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.entry: Entry | None = None
        self.text = Content("")
        self._background: dict[str, Background] = {}
        self._shown: object = None
        self._shown_id = ""
        self._whole_lines = False
        self._lines: list[Content] = []
        self._painted: dict[tuple[int, int, int], Strip] = {}

    def show(self, entry: Entry | None, others: Sequence[Entry], now: datetime) -> None:
        """The same entry in a newer version keeps the place that was scrolled to."""
        entry_id = entry["id"] if entry else ""
        moved = entry_id != self._shown_id
        self.entry, self._shown_id = entry, entry_id
        background = self._background.get(entry_id, Background())
        moment = rounded(now, from_text(entry["created_at"])) if entry else None
        shown = (entry, [one["id"] for one in others], background, moment)
        if shown != self._shown:
            self._shown = shown
            self._tell(detail(entry, others, background, now) if entry else Content(""))
        if moved:
            self.scroll_to(0, 0, animate=False)

    def show_text(self, text: Content, *, key: str) -> None:
        """Something that is no entry; a newer text of the same keeps the place."""
        moved, self._shown_id = key != self._shown_id, key
        if text != self._shown:
            self.entry, self._shown = None, text
            self._tell(text)
        if moved:
            self.scroll_to(0, 0, animate=False)

    def add_background(self, intervention_id: str, background: Background) -> None:
        """Kept for the entry that is shown alone; it is read again when the entry changes."""
        self._background = {intervention_id: background}

    def _tell(self, text: Content) -> None:
        self.text = text
        self._arrange()

    def _arrange(self) -> None:
        before, width = self._lines, self.scrollable_content_region.width
        if self._whole_lines:
            self._lines = self.text.expand_tabs().split("\n", allow_blank=True)
            width = max((line.cell_length for line in self._lines), default=width)
        elif width > 0:
            self._lines = wrapped(self.text, width)
        self.resize_lines(Size(width, len(self._lines)))
        self._repaint(before)

    def _repaint(self, before: list[Content]) -> None:
        """What differs: of an entry that is told anew, or of one that is much like the one before,
        most lines are the same."""
        now, top = self._lines, self.scroll_offset.y
        same = {
            place for place, (a, b) in enumerate(zip(before, now, strict=False)) if a.is_same(b)
        }
        self._painted = {key: strip for key, strip in self._painted.items() if key[0] in same}
        longer = max(len(before), len(now))
        for place in range(top, min(top + self.size.height, longer)):
            if place not in same:
                self.refresh_line_of_screen(place - top)

    def on_resize(self) -> None:
        self._arrange()
        self.refresh()

    def action_scroll_half(self, direction: int) -> None:
        self.scroll_relative(y=direction * self.size.height // 2, animate=False)

    def action_scroll_sideways(self, direction: int) -> None:
        self.scroll_relative(x=direction * _SIDEWAYS, animate=False)

    def action_wrap(self) -> None:
        self._whole_lines = not self._whole_lines
        self._arrange()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painted = {}

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        painted = (top + y, left, self.scrollable_content_region.width)
        if painted not in self._painted:
            self._painted[painted] = self._paint(*painted)
        return self._painted[painted]

    def _paint(self, place: int, left: int, width: int) -> Strip:
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[place]
        (strip,) = Visual.to_strips(
            self, line, max(line.cell_length, 1), 1, self.visual_style, apply_selection=False
        )
        return strip.crop_extend(left, left + width, self.rich_style)
