"""A turn or a line of the log on a screen of its own, where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from interventions.entry import Entry
from monitor.core.source import Source
from monitor.keys import HELP, LEAVE, STEPS, key
from monitor.screens.acting import ActingScreen
from monitor.widgets.detail_view import DetailView
from monitor.widgets.key_bar import KeyBar

_AGAIN_S = 0.5


class Below(Protocol):
    """The list from which it was opened."""

    source: Source

    def text(self, row: str) -> Content: ...

    def step_row(self, steps: int) -> str: ...


class TextScreen(ActingScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        *HELP,
        *STEPS,
        key("y,Y", "copy_text", "Copy", "Copy all of it", id="copy.text", show=True),
        *LEAVE,
    ]

    def __init__(self, below: Below, row: str) -> None:
        """It stays on its row, whose text is asked for again and again: it may still go on."""
        super().__init__(below.source)
        self._below = below
        self._row = row
        self._last = Content("")

    def compose(self) -> ComposeResult:
        yield DetailView(id="detail")
        yield KeyBar()

    def on_mount(self) -> None:
        self._show()
        self.query_one(DetailView).focus()
        self.set_interval(_AGAIN_S, self._show)

    def targets(self) -> Sequence[Entry]:
        return []

    def current(self) -> Entry | None:
        return None

    def _show(self) -> None:
        """What it was about may be gone from the list; then the last that was known stays."""
        text = self._below.text(self._row)
        if text.plain:
            self._last = text
            self.query_one(DetailView).show_text(text, key=self._row)

    def action_next_match(self, steps: int) -> None:
        self._row = self._below.step_row(steps) or self._row
        self._show()

    def action_copy_text(self) -> None:
        self._copy(lambda: self._last.plain, "it")

    def action_back(self) -> None:
        self.dismiss()

    def action_leave(self) -> None:
        self.dismiss()
