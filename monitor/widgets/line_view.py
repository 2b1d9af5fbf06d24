"""A view of lines that scrolls, whose length may change without a new layout of the screen."""

from __future__ import annotations

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


class LineView(ScrollView, can_focus=True):
    def resize_lines(self, size: Size) -> None:
        """Only a scrollbar that comes or goes takes room from anything. To lay out the whole
        screen, and paint all of both columns, took five times as long as what had changed."""
        if size == self.virtual_size:
            return
        before, room = self.virtual_size, self.container_size
        if _overflows(before, room) != _overflows(size, room) or not room:
            self.virtual_size = size
            return
        self.set_reactive(Widget.virtual_size, size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = size.height
            self.vertical_scrollbar.refresh()
        if self.show_horizontal_scrollbar:
            self.horizontal_scrollbar.window_virtual_size = size.width
            self.horizontal_scrollbar.refresh()
        self.scroll_y = self.validate_scroll_y(self.scroll_y)
        self.scroll_x = self.validate_scroll_x(self.scroll_x)

    def scroll_without_paint(self, lines: int) -> None:
        """What is in sight has moved along, so that the caller paints only what differs."""
        y = self.validate_scroll_y(self.scroll_y + lines)
        self.set_reactive(Widget.scroll_y, y)
        self.set_reactive(Widget.scroll_target_y, y)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = y

    def refresh_screen_line(self, line: int) -> None:
        self.refresh(Region(0, line, self.size.width, 1))


def _overflows(size: Size, room: Size) -> tuple[bool, bool]:
    return size.width > room.width, size.height > room.height
