"""The line in which words are typed that are looked for in the detail or the help."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from monitor.widgets.keys import key


class SearchLine(ModalScreen[None]):
    """`seek` is called with what is typed, as it is typed; with nothing when it is given up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "give_up", "No search", "Look for nothing", id="search.clear"),
    ]

    def __init__(self, words: str, seek: Callable[[str], None]) -> None:
        super().__init__()
        self._words = words
        self._seek = seek

    def compose(self) -> ComposeResult:
        with Horizontal(id="search"):
            yield Static("in it: /", markup=False)
            yield Input(self._words, placeholder="words; n and N go on", compact=True)

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        self._seek(message.value)

    @on(Input.Submitted)
    def _done(self) -> None:
        self.dismiss()

    def action_give_up(self) -> None:
        self._seek("")
        self.dismiss()
