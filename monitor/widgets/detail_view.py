"""One entry, or any other text, whole in a column that scrolls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from interventions.entry import Entry
from interventions.times import from_text
from monitor.core.rows import age_step
from monitor.core.snapshot import Background
from monitor.widgets.entry_text import entry_text
from monitor.widgets.keys import SCROLLING

_SIDEWAYS = 8
_DEEPER = 4
# `  >   41 |     return x`: the arrow, the number and the bar of a source line.
_SOURCE_LINE = re.compile(r"(\s*>?\s*\d+ )\|\s*")
_INDENT = re.compile(r"\s*")


class DetailView(ScrollView, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [*SCROLLING]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.entry: Entry | None = None
        self.text = Content("")
        self._background: dict[str, Background] = {}
        self._shown: object = None
        self.key = ""
        self._unwrapped = False
        self._lines: list[Content] = []

    def show(self, entry: Entry | None, others: Sequence[Entry], now: datetime) -> None:
        """The same entry in a newer version keeps the place that was scrolled to."""
        self.entry = entry
        entry_id = entry["id"] if entry else ""
        background = self._background.get(entry_id, Background())
        moment = age_step(now, from_text(entry["created_at"])) if entry else None
        shown = (entry, [one["id"] for one in others], background, moment)
        if shown != self._shown:
            self._shown = shown
            self.text = entry_text(entry, others, background, now) if entry else Content("")
            self._wrap()
        self._scroll_home_for(entry_id)

    def show_text(self, text: Content, *, key: str) -> None:
        """Something that is no entry; a newer text of the same key keeps the place."""
        if text != self._shown:
            self.entry, self._shown, self.text = None, text, text
            self._wrap()
        self._scroll_home_for(key)

    def _scroll_home_for(self, key: str) -> None:
        if key != self.key:
            self.key = key
            self.scroll_to(0, 0, animate=False)

    def add_background(self, intervention_id: str, background: Background) -> None:
        """Kept for the entry that is shown alone; it is read again when the entry changes."""
        self._background = {intervention_id: background}

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if self._unwrapped:
            self._lines = self.text.expand_tabs().split("\n", allow_blank=True)
            width = max((line.cell_length for line in self._lines), default=width)
        elif width > 0:
            self._lines = wrapped(self.text, width)
        # Not by its property, which lays out the whole screen: that takes five times as long.
        self.set_reactive(Widget.virtual_size, Size(width, len(self._lines)))
        self._scroll_update(self.virtual_size)
        self.refresh()

    def on_resize(self) -> None:
        self._wrap()

    def action_scroll_half(self, direction: int) -> None:
        self.scroll_relative(y=direction * self.size.height // 2, animate=False)

    def action_scroll_sideways(self, direction: int) -> None:
        self.scroll_relative(x=direction * _SIDEWAYS, animate=False)

    def action_wrap(self) -> None:
        self._unwrapped = not self._unwrapped
        self._wrap()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        if top + y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[top + y]
        (strip,) = Visual.to_strips(
            self, line, max(line.cell_length, 1), 1, self.visual_style, apply_selection=False
        )
        return strip.crop_extend(left, left + width, self.rich_style)


def wrapped(text: Content, width: int) -> list[Content]:
    """Lines of at most `width` cells. A continuation is indented further than its line, and has a
    bar under the bar of a source line, so that code keeps its column."""
    lines: list[Content] = []
    for line in text.split("\n", allow_blank=True):
        lines += [line] if line.cell_length <= width else _broken(line, width)
    return lines


def _broken(line: Content, width: int) -> Iterator[Content]:
    line = line.expand_tabs()
    first = line.wrap(width)[0]
    margin = _margin(line.plain, width // 3)
    yield first
    rest = line[len(first.rstrip()) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    for piece in rest.wrap(max(width - len(margin), 1)):
        yield Content.assemble((margin, "dim"), piece)


def _margin(line: str, most: int) -> str:
    source = _SOURCE_LINE.match(line)
    if source:
        bar = " " * len(source[1]) + "|  "
        return bar.ljust(min(len(source[0]) + _DEEPER, most))
    indent = _INDENT.match(line)
    depth = len(indent[0]) if indent else 0
    return " " * min(depth + _DEEPER, most) if depth else ""
