"""What every key does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from monitor.widgets.keys import hidden_key

_KEY_WIDTH = 12


class HelpScreen(ModalScreen[None]):
    """What every key does, made from the bindings that are alive where `?` was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        hidden_key(
            "escape,q,question_mark", "dismiss", "Back", "Back to where you were", id="help.back"
        ),
        hidden_key("j,down", "scroll(1)", "Down", "One line down", id="help.down"),
        hidden_key("k,up", "scroll(-1)", "Up", "One line up", id="help.up"),
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
