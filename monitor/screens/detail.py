"""One entry on a screen of its own, where the terminal is too narrow for two columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import BindingType

from interventions.entry import Entry
from monitor.core.source import Source
from monitor.keys import ACTS, HELP, LEAVE, STEPS
from monitor.screens.acting import ActingScreen
from monitor.widgets.detail_view import DetailView
from monitor.widgets.key_bar import KeyBar


class Below(Protocol):
    """The list from which it was opened."""

    source: Source
    read_only: str

    def step(self, steps: int) -> Entry | None: ...

    def patched(self, entries: Sequence[Entry]) -> None: ...


class DetailScreen(ActingScreen):
    """It stays on its entry, whatever happens to the list below."""

    BINDINGS: ClassVar[list[BindingType]] = [*HELP, *ACTS, *STEPS, *LEAVE]

    def __init__(self, below: Below, entry: Entry, others: Sequence[Entry], now: datetime) -> None:
        super().__init__(below.source)
        self.view = DetailView(id="detail")
        self._below = below
        self._first = (entry, others, now)

    def compose(self) -> ComposeResult:
        yield self.view
        yield KeyBar()

    def on_mount(self) -> None:
        self.show_entry(*self._first)
        self.view.focus()

    def show_entry(self, entry: Entry, others: Sequence[Entry], now: datetime) -> None:
        self.read_only = self._below.read_only
        self.view.show(entry, others, now)
        self.check_keys()

    def targets(self) -> list[Entry]:
        return [self.view.entry] if self.view.entry is not None else []

    def current(self) -> Entry | None:
        return self.view.entry

    def patched(self, entries: Sequence[Entry]) -> None:
        self._below.patched(entries)

    def action_next_match(self, steps: int) -> None:
        entry = self._below.step(steps)
        if entry is not None:
            self.view.entry = entry
            self._below.patched([])

    def action_back(self) -> None:
        self.dismiss()

    def action_leave(self) -> None:
        self.dismiss()
