"""One entry on a screen of its own, where the terminal is too narrow for two columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Footer

from interventions.entry import Entry
from monitor.keys import LEAVE
from monitor.screens.acting import ActingScreen
from monitor.source import Source
from monitor.widgets.detail_view import DetailView


class DetailScreen(ActingScreen):
    """It stays on its entry, whatever happens to the list below."""

    BINDINGS: ClassVar[list[BindingType]] = [*LEAVE]

    def __init__(
        self, source: Source, entry: Entry, others: Sequence[Entry], now: datetime
    ) -> None:
        super().__init__(source)
        self.view = DetailView(id="detail")
        self._first = (entry, others, now)

    def compose(self) -> ComposeResult:
        yield self.view
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.view.show(*self._first)
        self.view.focus()

    def targets(self) -> list[Entry]:
        return [self.view.entry] if self.view.entry is not None else []

    def action_back(self) -> None:
        self.dismiss()

    def action_leave(self) -> None:
        self.dismiss()
