"""A text on a screen of its own, such as a line of the log on a narrow terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer

from monitor.keys import key
from monitor.widgets.detail_view import DetailView

_AGAIN_S = 0.5


class TextScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q", "dismiss", "Back", "Back to the list", id="text.back", show=True),
    ]

    def __init__(self, text: Callable[[], Content]) -> None:
        """`text` is asked again and again: what it is about may still go on."""
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield DetailView(id="detail")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self.query_one(DetailView).focus()
        self.set_interval(_AGAIN_S, self._show)

    def _show(self) -> None:
        """What it was about may be gone from the list; then the last that was known stays."""
        text = self._text()
        if text.plain:
            self.query_one(DetailView).show_text(text, key="the one")
