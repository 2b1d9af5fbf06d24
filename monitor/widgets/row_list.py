"""A list whose cursor stands on an item and not on a place, and the pane around it.

Rows that come, go or change their order above the cursor do not move it off its item, and the
item stays on the same line of the terminal as long as that is possible. Textual's `DataTable`
keeps its cursor on a coordinate, so that an insertion above makes the next key act on another item.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from interventions.plaintext import fit
from monitor.core.rows import GAP, Column, Layout, Row, layout
from monitor.widgets.keys import CHOOSING
from monitor.widgets.text_view import LineView

_HEAD = 1
_STYLES = (
    *("head", "cursor", "cursor-blurred", "mark", "critical", "high", "medium"),
    *("dim", "good", "new", "regression", "snoozed", "owner"),
)


class RowList(LineView):
    BINDINGS: ClassVar[list[BindingType]] = [*CHOOSING]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"rows--{style}" for style in _STYLES}

    class Moved(Message):
        """The cursor came to another item, or the list became empty."""

    class Chosen(Message):
        """The row under the cursor is to be read."""

    class MarkClicked(Message):
        """The mark of the row that is under the cursor now was clicked."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._follow = False
        self.columns = tuple(columns)
        self.rows: list[Row] = []
        self.cursor_key: str | None = None
        self._places: dict[str, int] = {}
        self._layout = Layout()
        self._layout_size = Size()

    def begin_at(self, key: str, *, follow: bool) -> None:
        """Other rows are shown next, with the cursor on this one if it is there. `follow`: a cursor
        on the first row stays there when others come before it."""
        self._follow = follow
        self.rows, self.cursor_key, self._places = [], key or None, {}
        self.scroll_to(y=0, animate=False, immediate=True)

    def show(self, rows: Sequence[Row], columns: Sequence[Column]) -> None:
        """Replace the rows; the cursor stays on its item, or goes to the one that is now there."""
        if list(rows) == self.rows and columns == self.columns:
            return
        before, top = self.cursor, self._top(self.cursor)
        height = self.scrollable_content_region.height - _HEAD
        visible = before < 0 or 0 <= top - self.scroll_offset.y < height
        self.rows, self.columns = list(rows), tuple(columns)
        self._places = {row.key: place for place, row in enumerate(self.rows)}
        self._lay_out()
        place = self._places.get(self.cursor_key or "", min(before, len(self.rows) - 1))
        if self._follow and before == 0:
            place = 0
        if before >= 0 and place >= 0:
            self.scroll_to(y=self.scroll_y + self._top(place) - top, animate=False, immediate=True)
        # If the mouse wheel has scrolled it out of sight, it stays out of sight.
        self._set_cursor(max(place, 0) if self.rows else -1, reveal=visible)
        self.repaint()

    def _top(self, place: int) -> int:
        """The line on which a row begins."""
        tops = self._layout.tops
        return tops[min(max(place, 0), len(tops) - 1)]

    def _place(self, y: int) -> tuple[int, int]:
        """The row that is there, behind the last one that is none, and which of its lines."""
        line = y - _HEAD + self.scroll_offset.y
        place = bisect_right(self._layout.tops, line) - 1
        return place, line - self._top(place)

    def _fit(self) -> None:
        size = self._layout_size = self.scrollable_content_region.size
        self._layout = layout(self.columns, self.rows, size.width, size.height - _HEAD)

    def _lay_out(self) -> None:
        self._fit()
        self.hold(self._layout.tops[-1] + _HEAD)

    def on_resize(self) -> None:
        self._lay_out()
        self._reveal()
        self.repaint()

    @property
    def cursor(self) -> int:
        """The place of the cursor, -1 without rows."""
        return self._places.get(self.cursor_key or "", -1)

    def move_to(self, place: int) -> None:
        if self.rows:
            self._set_cursor(min(max(place, 0), len(self.rows) - 1))

    def move_to_key(self, key: str) -> None:
        if key in self._places:
            self._set_cursor(self._places[key])

    def _set_cursor(self, place: int, *, reveal: bool = True) -> None:
        key = self.rows[place].key if place >= 0 else None
        if key != self.cursor_key:
            self.cursor_key = key
            self.repaint()
            self.post_message(self.Moved())
        if reveal:
            self._reveal()

    def _reveal(self) -> None:
        place, height = self.cursor, self.scrollable_content_region.height - _HEAD
        if place < 0 or height < 1:
            return
        first, end = self._top(place), self._top(place + 1)
        if first < self.scroll_offset.y:
            self.scroll_to(y=first, animate=False, immediate=True)
        elif end > self.scroll_offset.y + height:
            self.scroll_to(y=end - height, animate=False, immediate=True)

    def action_move(self, steps: int) -> None:
        self.move_to(self.cursor + steps)

    def action_move_pages(self, pages: float) -> None:
        height = self.scrollable_content_region.height - _HEAD
        self.move_to(self.cursor + round(pages * max(height, 1)))

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(len(self.rows) - 1)

    def action_choose(self) -> None:
        if self.cursor_key is not None:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        if event.y < _HEAD:
            return
        place, _ = self._place(event.y)
        if place >= len(self.rows):
            return
        again = place == self.cursor
        self.move_to(place)
        if event.x < 2:
            self.post_message(self.MarkClicked())
        elif again:
            self.action_choose()

    def look(self, y: int) -> object:
        shown, (place, below) = self._layout, self._place(y)
        if y < _HEAD or place >= len(self.rows):
            return y < _HEAD and (self.columns, shown.columns)
        what = (self.rows[place], shown.texts[place][below], below, place == self.cursor)
        return *what, shown.columns, shown.indent

    def render_line(self, y: int) -> Strip:
        if self.scrollable_content_region.size != self._layout_size:
            self._fit()  # painted before the event of its new size
        width = self._layout_size.width
        if y < _HEAD:
            return self._head(width)
        place, below = self._place(y)
        if place >= len(self.rows):
            return Strip.blank(width, self.visual_style.rich_style)
        base = self._base(place)
        if below:
            indent, text = self._layout.indent, self._layout.texts[place][below]
            words = Segment(" " * indent + fit(text, width - indent), base)
            return Strip([words]).adjust_cell_length(width, base)
        return self._line(self.rows[place], self._layout.texts[place][0], base, width)

    def _base(self, place: int) -> Style:
        base = self.visual_style.rich_style
        if place == self.cursor:
            name = "rows--cursor" if self.has_focus else "rows--cursor-blurred"
            return base + self.get_component_rich_style(name)
        return base

    def _head(self, width: int) -> Strip:
        style = self.visual_style.rich_style + self.get_component_rich_style("rows--head")
        segments = []
        for number, size in self._layout.columns:
            column = self.columns[number]
            click = Style(meta={"@click": f"screen.{column.action}"}) if column.action else Style()
            words = _fitted(column.title, size, column) + " " * GAP
            segments.append(Segment(words, style + click))
        return Strip(segments).adjust_cell_length(width, style)

    def _line(self, row: Row, first_words: str, base: Style, width: int) -> Strip:
        """`first_words` of the column that takes the rest."""
        gap = Segment(" " * GAP, base)
        segments: list[Segment] = []
        for number, size in self._layout.columns:
            cell, column = row.cells[number], self.columns[number]
            if segments:
                segments.append(gap)
            room = size
            for word, style in cell.badges:
                taken = min(cell_len(word), room)
                segments.append(Segment(fit(word, taken), self._style(style, base)))
                segments += [gap] if room > taken else []
                room = max(room - taken - GAP, 0)
            text = _fitted(cell.text if column.size else first_words, room, column)
            segments.append(Segment(text, self._style(cell.style, base)))
        return Strip(segments).adjust_cell_length(width, base)

    def _style(self, name: str, base: Style) -> Style:
        if not name:
            return base
        return base + self.get_component_rich_style(f"rows--{name}", partial=True)


def _fitted(text: str, size: int, column: Column) -> str:
    return fit(text.rjust(size) if column.right else text, size)


class ListPane(Vertical):
    """A list, or in its place the reason why it is empty, and what stands above it."""

    def __init__(self, above: Widget, rows: RowList, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._above, self._list = above, rows
        self._empty = Static(id="empty", markup=False)
        self._notice = Static(id="notice", markup=False)

    def compose(self) -> ComposeResult:
        yield from (self._notice, self._above, self._list, self._empty)

    def show(
        self, rows: Sequence[Row], columns: Sequence[Column], empty: Content, notice: str
    ) -> None:
        """`notice` stands above rows that are not the whole truth."""
        self._notice.display = bool(rows and notice)
        shown = str(self._notice.content)
        if notice != shown:  # a number in it changes often, which needs no new layout
            self._notice.update(notice, layout=len(notice) != len(shown))
        # The list keeps the keys even when it has no rows, so it is never taken away.
        self.set_class(not rows, "-empty")
        self._empty.display = not rows
        if not rows and empty != self._empty.content:
            self._empty.update(empty)
        self._list.show(rows, columns)
