"""The application: which screen comes first, and nothing more."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from interventions.secrets.redaction import redact_text
from interventions.timestamps import utc_now
from interventions.view.plaintext import clean
from monitor.core.changes import Outcome
from monitor.core.snapshot import Snapshot
from monitor.core.source import Clock, Source
from monitor.keys import key
from monitor.screens.triage import TriageScreen

ENDED_BY = (signal.SIGTERM, signal.SIGHUP)
STILL_WORKING = (
    "What was begun here still runs and is waited for. "
    "Ctrl-C ends it at once: a turn can be resumed."
)


class Monitor(App[None]):
    """`working` counts the forms whose deed is not at its end."""

    TITLE = "monitor"
    CSS_PATH = "monitor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("ctrl+c", "quit", "Quit", "Quit at once", id="leave.now", priority=True),
        key(
            "ctrl+p",
            "command_palette",
            "Commands",
            "Look for a command by its name",
            id="leave.commands",
            priority=True,
        ),
    ]

    def __init__(self, source: Source, first: Snapshot, clock: Clock = utc_now) -> None:
        super().__init__()
        self.source = source
        self._first = first
        self.clock = clock
        self.changes: list[Outcome] = []
        self.working = 0
        self.left = False

    def on_mount(self) -> None:
        self.animation_level = "none"  # what slides to its place is late
        with suppress(RuntimeError, ValueError, NotImplementedError):  # not in the main thread
            for number in ENDED_BY:
                asyncio.get_running_loop().add_signal_handler(number, self._ended, number)
        # A thread that reads gives way to the one that paints after 1 ms instead of 5.
        sys.setswitchinterval(0.001)
        # What is there now stays until the end. Walking through it again and again, for garbage
        # that it cannot hold, stopped the keys for 200 ms at a time.
        self.call_after_refresh(gc.freeze)

    def on_unmount(self) -> None:
        with suppress(RuntimeError, ValueError, NotImplementedError):
            for number in ENDED_BY:
                asyncio.get_running_loop().remove_signal_handler(number)

    def _ended(self, number: int) -> None:
        """The terminal is given back first; a second signal does not wait for anything."""
        self.exit(return_code=128 + number)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every key that is alive, and what Textual offers itself (the theme, for one)."""
        seen = set()
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.id and active.enabled and binding.action not in seen:
                seen.add(binding.action)
                run = partial(self.run_action, binding.action, active.node)
                title = f"{binding.description} ({self.get_key_display(binding)})"
                yield SystemCommand(title, binding.tooltip, run)
        for command in super().get_system_commands(screen):
            # A picture would be sent to the browser by a way that the server does not offer.
            if not (self.is_web and command.title == "Screenshot"):
                yield command

    def _fatal_error(self) -> None:
        # Textual's own prints every local variable: the environment, and entries as they are.
        told = clean(redact_text(traceback.format_exc()))
        why = "The monitor failed; the queue is as it was. This is a mistake in the monitor."
        self._exit_renderables.append(Text(f"{told}\n{why}"))
        self._close_messages_no_wait()

    def exit(
        self, result: None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        """What was begun from here is waited for, and that has to be said."""
        self.left = True
        if self.working and message is None:
            message = STILL_WORKING
        super().exit(result, return_code, message)

    def get_default_screen(self) -> Screen[None]:
        return TriageScreen(self.source, self._first, self.clock)
