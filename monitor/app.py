"""The application: what its screens share, how it ends, and its first screen as text or picture."""

from __future__ import annotations

import asyncio
import gc
import re
import shutil
import sys
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import events
from textual._styles_cache import StylesCache
from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.filter import DimFilter, LineFilter
from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme
from textual.widgets import Input

from interventions.errors import SettingsError
from interventions.plaintext import clean
from interventions.secrets.redaction import redact_text
from interventions.settings import MonitorSettings
from interventions.times import utc_now
from monitor.core.app_state import AppState
from monitor.core.source import Clock, Snapshot, Source
from monitor.screens.help import HelpScreen
from monitor.screens.triage import TriageScreen
from monitor.widgets.keys import hidden_key, in_order, key, keymap

if TYPE_CHECKING:
    from textual.pilot import Pilot

# In both all text has a contrast of 4.5:1 or more.
DARK = Theme(
    name="dark",
    primary="#4aa5ee",
    secondary="#004578",
    accent="#ffb454",
    warning="#ffb454",
    error="#d95f7f",
    success="#5ccf7f",
    foreground="#e6e6e6",
    background="#121212",
    surface="#1a1a1a",
    panel="#24303a",
)
LIGHT = Theme(
    name="light",
    primary="#0b5394",
    secondary="#38618c",
    accent="#955d00",
    warning="#955d00",
    error="#b5173e",
    success="#197a37",
    foreground="#1c1c1c",
    background="#ffffff",
    surface="#ffffff",
    panel="#e9eef3",
    dark=False,
    variables={"primary-muted": "#d3e2f1"},
)
_DIM = DimFilter(0.7)
STILL_RUNNING = (
    "What was begun here still runs and is waited for. "
    "Ctrl-C ends it at once: a turn can be resumed."
)
# Nobody types three keys in that time.
_PASTED_WITHIN_S = 0.01
_LOOK_AHEAD_S = 0.003
_WEB_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class Monitor(App[None]):
    TITLE = "monitor"
    CSS_PATH = "monitor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        hidden_key("ctrl+z", "suspend_process", "Suspend", "fg comes back", id="leave.shell"),
        hidden_key("ctrl+c", "quit", "Quit", "Quit at once", id="leave.now", priority=True),
        key("ctrl+p", "command_palette", "Palette", "By name", id="leave.commands", priority=True),
    ]

    def __init__(
        self,
        source: Source,
        first: Snapshot,
        clock: Clock = utc_now,
        look: Path | None = None,
        settings: MonitorSettings | None = None,
        begin_at: str = "",
    ) -> None:
        """`begin_at` is the id of an entry. Raises SettingsError for a theme or a key that is not
        there."""
        super().__init__()
        chosen = settings or MonitorSettings()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        if chosen.theme not in self.available_themes:
            known = ", ".join(self.available_themes)
            raise SettingsError(
                f"[monitor] theme = {chosen.theme!r} is none", hint=f"one of {known}"
            )
        self.theme = chosen.theme
        self.set_keymap(keymap(chosen.keys))
        self.state = AppState(source, clock, look, chosen.bell)
        self._typed = deque[events.Key](maxlen=16)
        self._first, self._begin_at = first, begin_at

    def get_default_screen(self) -> Screen[None]:
        return TriageScreen(self.state, self._first, self._begin_at)

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, self._resumed)
        self.animation_level = "none"  # what slides to its place is late
        # A thread that reads gives way to the one that paints after 1 ms instead of 5.
        sys.setswitchinterval(0.001)
        # What is in memory then stays: full passes over it stopped the keys for 200 ms at a time.
        self.call_after_refresh(gc.freeze)
        self.call_after_refresh(gc.enable)

    def _resumed(self, app: App[Any]) -> None:
        """After `fg`, and after an editor: nothing of it is on the terminal any more."""
        self.refresh(layout=True)
        self.notify("the monitor goes on", timeout=2)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What is dim gets a colour of a known contrast: each terminal dims as it likes."""
        filters = super().get_line_filters()
        return filters if self.no_color else [*filters, _DIM]

    def post_message(self, message: Message) -> bool:
        """Letters that come at once are a text that was pasted, and no commands: not every terminal
        says so (bracketed paste)."""
        if isinstance(message, events.Key) and message.is_printable and not message.is_forwarded:
            self._typed.append(message)
            at_once = [k for k in self._typed if message.time - k.time < _PASTED_WITHIN_S]
            alike = len({each.key for each in at_once}) == 1  # held down
            if len(at_once) > 2 and not alike and not isinstance(self.focused, Input):
                for each in at_once:
                    each.stop().prevent_default()
                if len(at_once) == 3:
                    self.on_paste()
        return super().post_message(message)

    async def on_key(self, event: events.Key) -> None:
        """Before a key does anything: `post_message` has seen then what came with it."""
        if event.is_printable:
            await asyncio.sleep(_LOOK_AHEAD_S)

    def on_paste(self) -> None:
        """Say so where nothing can be typed."""
        self.notify("pasted text is no command", timeout=2)

    def action_help(self) -> None:
        self.push_screen(HelpScreen(list(in_order(self.screen.active_bindings).values())))

    def pop_screen(self) -> AwaitComplete:
        """What was on it goes: a cache of Textual would keep its painted lines, 130 KB each time
        that the help is opened."""
        StylesCache.get_inner_outer.cache_clear()
        return super().pop_screen()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every key that is alive, and what Textual offers itself (the theme, for one)."""
        alive = (active for active in screen.active_bindings.values() if active.enabled)
        for binding, node in {one.binding: one.node for one in alive if one.binding.id}.items():
            run = partial(self.run_action, binding.action, node)
            title = f"{binding.description} ({self.get_key_display(binding)})"
            yield SystemCommand(title, binding.tooltip, run)
        for command in super().get_system_commands(screen):
            # A picture would be sent to the browser by a way that the server does not offer.
            if not (self.is_web and command.title == "Screenshot"):
                yield command

    def _fatal_error(self) -> None:
        # Textual's own prints every local variable: the environment, and entries as they are.
        shown = clean(redact_text(traceback.format_exc()))
        why = "The monitor failed; the queue is as it was. This is a mistake in the monitor."
        self._exit_renderables.append(Text(f"{shown}\n{why}"))
        self._close_messages_no_wait()

    def exit(
        self, result: None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        """The process waits for changes begun here, so it says that it does."""
        changes = (worker for worker in self.workers if worker.group == "apply")
        if message is None and not all(worker.is_finished for worker in changes):
            message = STILL_RUNNING
        super().exit(result, return_code, message)


def first_screen(app: App[Any]) -> str:
    """As wide and high as the terminal or as COLUMNS and LINES say; 100 by 30 in a pipe. Empty when
    the application failed; it has shown why, and its `return_code` is not 0."""
    shown = ""

    async def read_and_exit(pilot: Pilot[Any]) -> None:
        nonlocal shown
        await pilot.pause()
        if app.return_code is None:  # to end what has failed would make it a success
            shown = f"{screen_text(app)}\n"
            app.exit()

    app.run(headless=True, size=shutil.get_terminal_size((100, 30)), auto_pilot=read_and_exit)
    return "" if app.return_code else shown


def screen_text(app: App[Any]) -> str:
    """What is on the screen, a line each, without colours."""
    # Textual exports pictures of a screen but no text; the compositor is what both are made from.
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip()


def screen_svg(app: App[Any]) -> str:
    """A picture that loads nothing from anywhere: any monospace font will do."""
    return _WEB_FONTS.sub("", app.export_screenshot(title=app.title, simplify=True))
