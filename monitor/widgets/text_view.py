"""A text in parts that scrolls in a column: by lines, by parts, and to words that one looks for."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from monitor.widgets.keys import READING
from monitor.widgets.search_line import SearchLine

_HEADING = "bold $text-accent"
_DEEPER = 4
# Of `  >   41 |     return x` the arrow and the number, with the indentation; else that alone.
_BEFORE_WORDS = re.compile(r"(?:(\s*>?\s*\d+ )\|)?\s*")


@dataclass(frozen=True)
class Part:
    """`short` stands in place of `lines` while the detail is folded; None if all of it is shown."""

    title: str
    lines: Sequence[Content]
    short: Sequence[Content] | None = None

    def shown(self, *, folded: bool) -> list[Content]:
        """The text with its heading, which says how much is folded."""
        short = self.short if folded else None
        lines = self.lines if short is None else short
        if not self.title:
            return list(lines)
        left = len(self.lines) - len(lines)
        more = f"  ▸ {left} more line{'s' if left > 1 else ''}" if left > 0 else ""
        return [Content.assemble((self.title, _HEADING), (more, "dim")), *lines]


def beginning(lines: Sequence[Content], most: int) -> Sequence[Content] | None:
    """The first ones; None where nothing would be gained."""
    return lines[:most] if len(lines) > most + 1 else None


def text_of(parts: Sequence[Part]) -> str:
    """Whole, as it is copied."""
    whole = (part.shown(folded=False) for part in parts)
    return "\n\n".join("\n".join(line.plain for line in lines) for lines in whole)


class LineView(ScrollView, can_focus=True):
    """Of the lines in sight it paints those that differ: all of them take ten times as long."""

    _in_sight: Sequence[object] = ()

    def look(self, y: int) -> object:
        """All that a line in sight is painted from."""
        raise NotImplementedError

    def repaint(self) -> None:
        """After each change of what `look` says."""
        size = self.scrollable_content_region.size
        before, self._in_sight = self._in_sight, [self.look(y) for y in range(size.height)]
        for y, (earlier, look) in enumerate(zip_longest(before, self._in_sight)):
            if earlier != look:
                self.refresh(Region(0, y, size.width, 1))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """In place of Textual's, which paints everything."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        self.repaint()

    def hold(self, lines: int) -> None:
        size = Size(self.scrollable_content_region.width, lines)
        if size != self.virtual_size:
            # Not by its property, which lays out the whole screen: that takes five times as long.
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)


class TextView(LineView):
    auto_links = False  # Textual looks for them in each line
    BINDINGS: ClassVar[list[BindingType]] = [*READING]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.key = ""
        self.parts: Sequence[Part] = ()
        self._folded = True
        self._lines: list[Content] = []
        self._tops: list[int] = []  # where each part begins
        self._sought = ""

    def show_text(self, parts: Sequence[Part], *, key: str) -> None:
        """A newer text of the same key keeps the place that was scrolled to."""
        if key != self.key:
            self.key, self._sought = key, ""
            self.scroll_to(0, 0, animate=False)
            self.repaint()
        if parts != self.parts:
            self.parts = parts
            self._wrap()

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        self._lines, self._tops = [], []
        for part in self.parts:
            if self._lines:
                self._lines.append(Content(""))
            self._tops.append(len(self._lines))
            self._lines += wrapped(part.shown(folded=self._folded), width)
        self.hold(len(self._lines))
        self.repaint()

    def on_resize(self) -> None:
        self._wrap()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "match" or bool(self._sought)

    def action_move(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)

    def action_move_pages(self, pages: float) -> None:
        self.scroll_relative(y=round(pages * self.size.height), animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

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
        """Scroll to the next of the places, as far as there is something to scroll."""
        top = self.scroll_offset.y
        ahead = [place for place in places[::direction] if (place - top) * direction > 0]
        if target := ahead[:1] or (list(places[::direction])[:1] if around else []):
            self.scroll_to(y=target[0], animate=False)

    def action_search(self) -> None:
        line = self.screen.query_one(SearchLine)
        line.open(self, self._sought, "words; n and N go on", self.seek)

    def seek(self, words: str) -> None:
        """While it is typed: the first place that has it, with nothing folded."""
        self._sought = words.lower()
        if words and self._folded:
            self._folded = False
            self._wrap()
        if self._sought and (found := self._matches()):
            self.scroll_to(y=next((at for at in found if at >= self.scroll_offset.y), found[0]))
        self.repaint()
        self.screen.refresh_bindings()

    def _matches(self) -> list[int]:
        return [at for at, line in enumerate(self._lines) if self._sought in line.plain.lower()]

    def action_match(self, direction: int) -> None:
        found = self._matches()
        self._go_to(found, direction, around=True)
        if not found:
            self.notify(f"{self._sought!r} is not in it", markup=False)

    def look(self, y: int) -> object:
        place = self.scroll_offset.y + y  # `==` of contents sees no colours
        return [(line.plain, line.spans, self._sought) for line in self._lines[place : place + 1]]

    def render_line(self, y: int) -> Strip:
        place, width = self.scroll_offset.y + y, self.scrollable_content_region.width
        if place >= len(self._lines):
            return Strip.blank(width, self.visual_style.rich_style)
        line = self._lines[place]
        if self._sought:
            wanted = re.compile(re.escape(self._sought), re.IGNORECASE)
            line = line.highlight_regex(wanted, style="reverse")
        (strip,) = Visual.to_strips(
            self, line, max(line.cell_length, 1), 1, self.visual_style, apply_selection=False
        )
        return strip.adjust_cell_length(width, self.visual_style.rich_style)


def wrapped(text: Iterable[Content], width: int) -> list[Content]:
    """Lines of at most `width` cells. A continuation is indented further than its line, and has a
    bar under the bar of a source line, so that code keeps its column."""
    lines: list[Content] = []
    for line in text:
        if line.cell_length <= width:
            lines.append(line)
            continue
        first, *_ = line.expand_tabs().wrap(width)
        rest = line.expand_tabs()[len(first.rstrip()) :]
        rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
        margin = _margin(line.plain.expandtabs(), width // 3)
        pieces = rest.wrap(max(width - len(margin), 1))
        lines += [first, *(Content.assemble((margin, "dim"), piece) for piece in pieces)]
    return lines


def _margin(line: str, most: int) -> str:
    before = _BEFORE_WORDS.match(line)
    number, depth = (before[1] or "", len(before[0])) if before else ("", 0)
    bar = " " * len(number) + "|" if number else ""
    return bar.ljust(min(depth + _DEEPER, most)) if depth else ""
