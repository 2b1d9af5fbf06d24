"""What every key does, made from the bindings that are alive where `?` was pressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from monitor.keys import key

_KEY_WIDTH = 12


class HelpScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q,question_mark", "dismiss", "Back", "Back to where you were", id="help.back"),
        key("j,down", "scroll(1)", "Down", "One line down", id="help.down"),
        key("k,up", "scroll(-1)", "Up", "One line up", id="help.up"),
    ]

    def __init__(self, bindings: Sequence[ActiveBinding]) -> None:
        super().__init__()
        # Those that hold everywhere come first in what is alive, and are wanted last.
        self._bindings_shown = sorted(bindings, key=lambda active: active.binding.priority)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="box") as box:
            box.border_title = "Keys"
            box.border_subtitle = "esc"
            yield Static(self._text(), id="help-text", markup=False)

    def _text(self) -> Content:
        """One line for each action: its keys, its name and what it does."""
        keys: dict[str, list[str]] = {}
        words: dict[str, tuple[str, str]] = {}
        for active in self._bindings_shown:
            binding = active.binding
            if binding.id is None or not binding.description:
                continue
            shown = self.app.get_key_display(binding)
            keys.setdefault(binding.action, []).append(shown)
            words[binding.action] = (binding.description, binding.tooltip)
        lines = []
        for action, (name, tooltip) in words.items():
            pressed = " ".join(dict.fromkeys(keys[action]))
            lines.append(
                Content.assemble(
                    (f"{pressed:<{_KEY_WIDTH}}", "bold $text-accent"),
                    f"{name:<15}",
                    (tooltip, "dim"),
                )
            )
        return Content("\n").join(lines)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#help", VerticalScroll).scroll_relative(y=lines, animate=False)
