"""What covers the list: an entry, where the terminal is too narrow for two columns; a turn or a
line of the log; and the help."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from interventions.entry import Entry
from monitor.core.app_state import AppState
from monitor.screens.entry_actions import EntryScreen
from monitor.widgets.detail_view import DetailView
from monitor.widgets.key_bar import KeyBar
from monitor.widgets.keys import ENTRY_ACTIONS, HELP, LEAVING, MATCHES, key

_REFRESH_S = 0.5
_KEY_WIDTH = 12


class ListScreen(Protocol):
    """The list that a page covers."""

    state: AppState
    read_only: str

    def move_cursor(self, steps: int) -> str: ...

    def move_to_entry(self, steps: int) -> Entry | None: ...

    def row_text(self, row: str) -> Content: ...

    def apply_changes(self, entries: Sequence[Entry]) -> None: ...


class PageScreen(EntryScreen):
    BINDINGS: ClassVar[list[BindingType]] = [*HELP]

    def __init__(self, covered: ListScreen) -> None:
        super().__init__(covered.state)
        self.covered = covered
        self.view = DetailView(id="detail")

    def compose(self) -> ComposeResult:
        yield self.view
        yield KeyBar()

    def on_mount(self) -> None:
        self.view.focus()

    def targets(self) -> Sequence[Entry]:
        return [self.view.entry] if self.view.entry is not None else []

    def current(self) -> Entry | None:
        return self.view.entry

    def action_back(self) -> None:
        self.dismiss()

    def action_leave(self) -> None:
        self.dismiss()


class DetailScreen(PageScreen):
    """It stays on its entry, whatever happens to the list below."""

    BINDINGS: ClassVar[list[BindingType]] = [*ENTRY_ACTIONS, *MATCHES, *LEAVING]

    def __init__(
        self, covered: ListScreen, entry: Entry, others: Sequence[Entry], now: datetime
    ) -> None:
        super().__init__(covered)
        self._first = (entry, others, now)

    def on_mount(self) -> None:
        self.show_entry(*self._first)

    def show_entry(self, entry: Entry, others: Sequence[Entry], now: datetime) -> None:
        self.read_only = self.covered.read_only
        self.view.show(entry, others, now)
        self.update_keys()

    def apply_changes(self, entries: Sequence[Entry]) -> None:
        self.covered.apply_changes(entries)

    def action_next_match(self, steps: int) -> None:
        entry = self.covered.move_to_entry(steps)
        if entry is not None:
            self.view.entry = entry
            self.covered.apply_changes([])


class TextScreen(PageScreen):
    """It stays on its row, whose text is asked for again and again: a turn may still run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *MATCHES,
        key("y,Y", "copy_text", "Copy", "Copy all of it", id="copy.text", show=True),
        *LEAVING,
    ]

    def __init__(self, covered: ListScreen, row: str) -> None:
        super().__init__(covered)
        self._row = row

    def on_mount(self) -> None:
        self._show()
        self.set_interval(_REFRESH_S, self._show)

    def _show(self) -> None:
        """Of a row that is gone from the list, the last text stays."""
        text = self.covered.row_text(self._row)
        if text.plain:
            self.view.show_text(text, key=self._row)

    def action_next_match(self, steps: int) -> None:
        self._row = self.covered.move_cursor(steps) or self._row
        self._show()

    def action_copy_text(self) -> None:
        self.copy(lambda: self.view.text.plain, "it")


class HelpScreen(ModalScreen[None]):
    """What every key does, made from the bindings that are alive where `?` was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q,question_mark", "dismiss", "Back", "Back to where you were", id="help.back"),
        key("j,down", "scroll(1)", "Down", "One line down", id="help.down"),
        key("k,up", "scroll(-1)", "Up", "One line up", id="help.up"),
    ]

    def __init__(self, bindings: Sequence[ActiveBinding]) -> None:
        super().__init__()
        # Those of the application come first among the active ones, and are wanted last.
        self._shown = sorted(bindings, key=lambda active: active.binding.priority)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="box") as box:
            box.border_title = "Keys"
            box.border_subtitle = "esc"
            yield Static(self._text(), id="help-text", markup=False)

    def _text(self) -> Content:
        """One line for each action: its keys, its name and what it does."""
        keys: dict[str, list[str]] = {}
        words: dict[str, tuple[str, str]] = {}
        for active in self._shown:
            binding = active.binding
            if binding.id is None or not binding.description:
                continue
            keys.setdefault(binding.action, []).append(self.app.get_key_display(binding))
            words[binding.action] = (binding.description, binding.tooltip)
        lines = []
        for action, (name, tooltip) in words.items():
            pressed = " ".join(dict.fromkeys(keys[action]))
            pressed = f"{pressed:<{_KEY_WIDTH}}"
            line = ((pressed, "bold $text-accent"), f"{name:<15}", (tooltip, "dim"))
            lines.append(Content.assemble(*line))
        return Content("\n").join(lines)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#help", VerticalScroll).scroll_relative(y=lines, animate=False)
