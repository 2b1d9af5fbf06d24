"""A list, or the reason why it is empty in its place."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from monitor.core.rows import Column, Row
from monitor.widgets.row_list import RowList


class ListPane(Vertical):
    def __init__(self, name: str, columns: Sequence[Column], *, follow: bool = False) -> None:
        super().__init__(id=f"pane-{name}", classes="pane")
        self.list = RowList(columns, follow=follow, id=f"{name}-list")
        self._empty = Static(id=f"{name}-empty", classes="empty", markup=False)
        self._notice = Static(id=f"{name}-notice", classes="notice", markup=False)

    def compose(self) -> ComposeResult:
        yield self._notice
        yield self.list
        yield self._empty

    def show(
        self, rows: Sequence[Row], empty: Content, *, sorted_title: str = "", notice: str = ""
    ) -> None:
        """`notice` stands above rows that are not the whole truth."""
        self._tell(self._notice, Content(notice))
        self._notice.display = bool(notice)
        # The list keeps the keys even when it has no rows, so it is never taken away.
        self.set_class(not rows, "-empty")
        self._empty.display = not rows
        if not rows:
            self._tell(self._empty, empty)
        self.list.show(rows, sorted_title)

    def _tell(self, where: Static, text: Content) -> None:
        """An update lays the screen out anew, so there is none without a change, nor for figures
        that are other ones."""
        before = str(where.content)
        if before != text.plain:
            where.update(text, layout=_shape(before) != _shape(text.plain))


def _shape(text: str) -> list[int]:
    return [len(line) for line in text.split("\n")]
