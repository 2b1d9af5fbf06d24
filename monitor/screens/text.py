"""A text on a screen of its own, such as a line of the log on a narrow terminal."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer

from monitor.keys import key
from monitor.widgets.detail_view import DetailView


class TextScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q", "dismiss", "Back", "Back to the list", id="text.back", show=True),
    ]

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield DetailView(id="detail")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        view = self.query_one(DetailView)
        view.show_text(self._text)
        view.focus()
