"""One entry, or any other text, in a column that scrolls: by lines, by parts, and to words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
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
from monitor.widgets.entry_text import entry_parts
from monitor.widgets.keys import SCROLLING
from monitor.widgets.part import Part
from monitor.widgets.search_line import SearchLine

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
        self.key = ""
        self.parts: Sequence[Part] = ()
        self._background: dict[str, Background] = {}
        self._shown: object = None
        self._folded = True
        self._unwrapped = False
        self._lines: list[Content] = []
        self._tops: list[int] = []  # where each part begins
        self._sought = ""

    def show(self, entry: Entry | None, others: Sequence[Entry], now: datetime) -> None:
        """The same entry in a newer version keeps the place that was scrolled to."""
        self.entry = entry
        entry_id = entry["id"] if entry else ""
        background = self._background.get(entry_id)
        moment = age_step(now, from_text(entry["last_seen"])) if entry else None
        shown = (entry, [one["id"] for one in others], background, moment)
        if shown != self._shown:
            self._shown = shown
            self.parts = entry_parts(entry, others, background, now) if entry else ()
            self._wrap()
        self._scroll_home_for(entry_id)

    def show_text(self, text: Sequence[Part], *, key: str) -> None:
        """Something that is no entry; a newer text of the same key keeps the place."""
        if text != self._shown:
            self.entry, self._shown, self.parts = None, text, text
            self._wrap()
        self._scroll_home_for(key)

    def _scroll_home_for(self, key: str) -> None:
        if key != self.key:
            self.key, self._sought = key, ""
            self.scroll_to(0, 0, animate=False)

    def add_background(self, intervention_id: str, background: Background) -> None:
        """Kept for the entry that is shown alone; it is read again when the entry changes."""
        self._background = {intervention_id: background}

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        self._lines, self._tops = [], []
        for part in self.parts:
            if self._lines:
                self._lines.append(Content(""))
            self._tops.append(len(self._lines))
            lines = part.shown(folded=self._folded)
            if self._unwrapped:
                self._lines += [line.expand_tabs() for line in lines]
            else:
                self._lines += wrapped(lines, width)
        if self._unwrapped:
            width = max((line.cell_length for line in self._lines), default=width)
        # Not by its property, which lays out the whole screen: that takes five times as long.
        self.set_reactive(Widget.virtual_size, Size(width, len(self._lines)))
        self._scroll_update(self.virtual_size)
        self.refresh()

    def on_resize(self) -> None:
        self._wrap()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "match" or bool(self._sought)

    def action_scroll_half(self, direction: int) -> None:
        self.scroll_relative(y=direction * self.size.height // 2, animate=False)

    def action_scroll_sideways(self, direction: int) -> None:
        self.scroll_relative(x=direction * _SIDEWAYS, animate=False)

    def action_wrap(self) -> None:
        self._unwrapped = not self._unwrapped
        self._wrap()

    def action_fold(self) -> None:
        """The part at the top of the screen stays there."""
        top = self.scroll_offset.y
        part = bisect_right(self._tops, top) - 1
        into = top - self._tops[part] if self._tops else 0
        self._folded = not self._folded
        self._wrap()
        if self._tops:
            self.scroll_to(y=self._tops[part] + into, animate=False)

    def action_part(self, direction: int) -> None:
        self._go_to(self._tops, direction)

    def _go_to(self, places: Sequence[int], direction: int, *, around: bool = False) -> None:
        """To the next of the places, as far as there is something to scroll."""
        top = self.scroll_offset.y
        ahead = [place for place in places[::direction] if (place - top) * direction > 0]
        if target := ahead[:1] or (list(places[::direction])[:1] if around else []):
            self.scroll_to(y=target[0], animate=False)

    def action_search(self) -> None:
        self.app.push_screen(SearchLine(self._sought, self._seek))

    def _seek(self, words: str) -> None:
        """While it is typed: the first place that has it, with nothing folded."""
        self._sought = words.lower()
        if words and self._folded:
            self._folded = False
            self._wrap()
        if self._sought and (found := self._matches()):
            self.scroll_to(y=next((at for at in found if at >= self.scroll_offset.y), found[0]))
        self.refresh()
        self.screen.refresh_bindings()

    def _matches(self) -> list[int]:
        return [at for at, line in enumerate(self._lines) if self._sought in line.plain.lower()]

    def action_match(self, direction: int) -> None:
        found = self._matches()
        self._go_to(found, direction, around=True)
        if not found:
            self.notify(f"{self._sought!r} is not in it", markup=False)

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        if top + y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[top + y]
        if self._sought:
            wanted = re.compile(re.escape(self._sought), re.IGNORECASE)
            line = line.highlight_regex(wanted, style="reverse")
        (strip,) = Visual.to_strips(
            self, line, max(line.cell_length, 1), 1, self.visual_style, apply_selection=False
        )
        return strip.crop_extend(left, left + width, self.rich_style)


def wrapped(text: Iterable[Content], width: int) -> list[Content]:
    """Lines of at most `width` cells. A continuation is indented further than its line, and has a
    bar under the bar of a source line, so that code keeps its column."""
    lines: list[Content] = []
    for line in text:
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
