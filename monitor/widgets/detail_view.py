"""A text in a column that scrolls: by lines, by parts, and to words that are looked for."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from interventions.entry import Entry, is_open
from interventions.errors import QueueError
from monitor.core.feeds import changes_since
from monitor.core.source import Background, Source
from monitor.widgets.entry_text import entry_parts
from monitor.widgets.keys import READING
from monitor.widgets.part import Part
from monitor.widgets.search_line import SearchLine

_DEEPER = 4
# A key that is held down moves the cursor only; files are read when it rests.
_REST_S = 0.1
# Of `  >   41 |     return x` the arrow and the number, with the indentation; else that alone.
_BEFORE_WORDS = re.compile(r"(?:(\s*>?\s*\d+ )\|)?\s*")


class TextView(ScrollView, can_focus=True):
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
        if parts != self.parts:
            self.parts = parts
            self._wrap()
        if key != self.key:
            self.key, self._sought = key, ""
            self.scroll_to(0, 0, animate=False)

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
        # Not by its property, which lays out the whole screen: that takes five times as long.
        self.set_reactive(Widget.virtual_size, Size(width, len(self._lines)))
        self._scroll_update(self.virtual_size)
        self.refresh()

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
        """To the next of the places, as far as there is something to scroll."""
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
        place, width = self.scroll_offset.y + y, self.scrollable_content_region.width
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[place]
        if self._sought:
            wanted = re.compile(re.escape(self._sought), re.IGNORECASE)
            line = line.highlight_regex(wanted, style="reverse")
        (strip,) = Visual.to_strips(
            self, line, max(line.cell_length, 1), 1, self.visual_style, apply_selection=False
        )
        return strip.adjust_cell_length(width, self.rich_style)


class DetailView(TextView):
    """One entry, with what is read about it once it rests here; or whatever else a row is."""

    def __init__(self, source: Source, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.entry: Entry | None = None
        self._source = source
        self._background: dict[str, Background] = {}  # of the entry that was read last
        self._changes: dict[int, tuple[str, ...]] = {}  # since a turn stopped, by its number
        self._read_of: object = None
        self._made_of: object = None

    def show(self, entry: Entry, others: Sequence[Entry], now: datetime) -> None:
        """`others` are open entries with the same fingerprint."""
        self.entry, self._others, self._now = entry, others, now
        if self._read_of != (entry["id"], entry["version"]):
            self._read_of = (entry["id"], entry["version"])
            self._read(entry)
        background, parts = self._background.get(entry["id"]), self.parts
        made_of = (entry, [one["id"] for one in others], background, now.replace(microsecond=0))
        if made_of != self._made_of:
            self._made_of, parts = made_of, entry_parts(entry, others, background, now)
        super().show_text(parts, key=entry["id"])

    def show_text(self, parts: Sequence[Part], *, key: str) -> None:
        self.entry = self._made_of = self._read_of = None
        super().show_text(parts, key=key)

    def on_focus(self) -> None:
        if self.entry is not None:
            self._read(self.entry)

    @work(exclusive=True)
    async def _read(self, entry: Entry) -> None:
        """First what the queue knows; then, for what has the keys, what has changed since its turn
        stopped: that takes longer, and loads the modules of tools that the turn was asked with."""
        await asyncio.sleep(_REST_S)
        source, turn_id = self._source, entry["turn_id"]
        try:
            background = await asyncio.to_thread(source.background, entry["id"])
        except QueueError:
            background = Background()  # the list says what is the matter with the queue
        self._show_behind(entry, background)
        if self.has_focus and turn_id and source.queue and is_open(entry):
            self._changes[turn_id] = await asyncio.to_thread(changes_since, source.home, turn_id)
            self._show_behind(entry, background)

    def _show_behind(self, entry: Entry, background: Background) -> None:
        changes = self._changes.get(entry["turn_id"], ())
        self._background = {entry["id"]: replace(background, changes=changes)}
        if self.entry is not None and self.entry["id"] == entry["id"]:
            self.show(self.entry, self._others, self._now)


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
