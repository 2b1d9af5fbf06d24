"""The line at the foot in which one types what to look for: in a text, or in the lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from monitor.widgets.keys import hidden_key


class SearchLine(ModalScreen[None]):
    """`seek` is called with what is typed, as it is typed; with nothing when it is given up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        hidden_key("enter,down", "dismiss", "Done", "Keep the words", id="search.done"),
        hidden_key("escape", "give_up", "Clear", "Look for nothing", id="search.clear"),
    ]

    def __init__(self, words: str, example: str, seek: Callable[[str], None]) -> None:
        super().__init__()
        self._words, self._example, self._seek = words, example, seek

    def compose(self) -> ComposeResult:
        with Horizontal(id="search"):
            yield Static("/ ", markup=False)
            yield Input(self._words, placeholder=self._example, compact=True)
            yield Static(" ⏎ keeps  esc clears", classes="hint", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Typed before the field had the focus."""
        if event.character and event.is_printable:
            self.query_one(Input).insert_text_at_cursor(event.character)

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        self._seek(message.value)

    @on(Input.Submitted)
    def _done(self) -> None:
        self.dismiss()

    def action_give_up(self) -> None:
        self._seek("")
        self.dismiss()
