"""The line at the foot in which one types what to look for: in a text, or in the lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from monitor.widgets.keys import key


class SearchInput(Input):
    # Its own, because an input has another for Enter already.
    BINDINGS: ClassVar[list[BindingType]] = [
        key("enter,down", "submit", "Keep", "Keep it", key_display="⏎", id="search.done"),
    ]


class SearchLine(Horizontal):
    """There once on a screen; `asker` is who looks for something in it, and has the keys again
    afterwards."""

    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "give_up", "Clear", "Look for nothing", id="search.clear"),
    ]
    asker: Widget | None = None

    def compose(self) -> ComposeResult:
        yield Static("/ ", markup=False)
        yield SearchInput(compact=True)

    def open(self, asker: Widget, words: str, example: str, seek: Callable[[str], None]) -> None:
        """`seek` is called with what is typed, as it is typed; with nothing when it is given up."""
        self.asker, self._seek = asker, seek
        field = self.query_one(Input)
        with self.prevent(Input.Changed):
            field.value, field.placeholder = words, example
        self.display = True
        self.screen.set_focus(field)  # at once: the next key is a letter of it

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        if self.asker is not None:  # else it was typed too fast after Enter
            self._seek(message.value)

    @on(Input.Submitted)
    def close(self) -> None:
        asker, self.asker = self.asker, None
        self.screen.set_focus(asker)
        self.display = False

    def action_give_up(self) -> None:
        self._seek("")
        self.close()
