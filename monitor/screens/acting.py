"""The keys that act on entries, for every screen that shows some."""

from __future__ import annotations

from textual.screen import Screen

from interventions.entry import Entry
from monitor.screens.help import HelpScreen
from monitor.source import Source


class ActingScreen(Screen[None]):
    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def targets(self) -> list[Entry]:
        """What a key acts on now: the marked ones, else the one under the cursor."""
        raise NotImplementedError

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(list(self.active_bindings.values())))
