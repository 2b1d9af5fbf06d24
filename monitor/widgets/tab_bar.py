"""The tabs in one line, each with its number and how much is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static


class TabBar(Static):
    @dataclass
    class Picked(Message):
        tab: str

    def __init__(self, titles: Mapping[str, str], *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._titles = dict(titles)
        self._ends: list[tuple[int, str]] = []

    def show(self, current: str, remarks: dict[str, str]) -> None:
        parts, self._ends, end = [], [], 0
        for number, (tab, title) in enumerate(self._titles.items(), 1):
            remark = f" {remarks[tab]}" if remarks.get(tab) else ""
            text = f" {number} {title}{remark} "
            end += cell_len(text)
            self._ends.append((end, tab))
            style = "reverse bold" if tab == current else ""
            parts.append(Content.styled(text, style))
        self.update(Content("").join(parts), layout=False)  # always one line

    def on_click(self, event: events.Click) -> None:
        for end, tab in self._ends:
            if event.x < end:
                self.post_message(self.Picked(tab))
                return
