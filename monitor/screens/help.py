"""What every key does, and what the marks of a row mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from monitor.screens.entry_tabs import BADGES
from monitor.widgets.keys import hidden_key
from monitor.widgets.search_line import SearchLine

_KEY_WIDTH, _NAME_WIDTH = 12, 15
# By what the ids begin with, in the order of the help; others follow under their own names.
_GROUPS = {
    "act": "Change",
    "open": "Look closer",
    "list": "The list",
    "sort": "Its order",
    "scroll": "In the detail",
    "tab": "Tabs",
    "go": "Go to",
    "copy": "Take along",
    "live": "What comes",
    "trends": "Trends",
    "move": "Move",
    "leave": "Way out",
}
_MARKS = (
    *((word, "", meaning) for word, _, meaning in BADGES.values()),
    ("▸4  ▾4", "", "a cause of 4 entries, folded and unfolded (f)"),
    ("+2", "", "holds 2 other failures; its colour is the worst of them"),
    ("✓  -", "", "marked; some of a cause are marked"),
)


class HelpScreen(ModalScreen[None]):
    """Made from the bindings that are alive where `?` was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        hidden_key(
            "escape,q,question_mark", "dismiss", "Back", "Back to where you were", id="help.back"
        ),
        hidden_key(
            "slash", "search", "Search", "Show the lines with these words", id="help.search"
        ),
        hidden_key("j,down", "scroll(1)", "Down", "One line down", id="help.down"),
        hidden_key("k,up", "scroll(-1)", "Up", "One line up", id="help.up"),
    ]

    def __init__(self, bindings: Sequence[ActiveBinding]) -> None:
        super().__init__()
        self._active = bindings
        self._wanted = ""

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="box") as box:
            box.border_title = "Keys"
            box.border_subtitle = "/ search  esc back"
            yield Static(self._text(), id="help-text", markup=False)

    def _text(self) -> Content:
        """A line for each action, in groups; those that have all the words that are wanted."""
        lines: list[Content] = []
        for title, rows in self._groups().items():
            words = self._wanted.lower().split()
            found = [r for r in rows if all(w in " ".join((title, *r)).lower() for w in words)]
            if found:
                lines += [Content(""), Content.styled(title, "bold $text-primary")]
                lines += [_line(*row) for row in found]
        return Content("\n").join(lines[1:] or [Content("no key has these words")])

    def _groups(self) -> dict[str, list[tuple[str, str, str]]]:
        """(keys, name, what it does) by the titles of their groups."""
        groups = {title: dict[str, tuple[str, str, str]]() for title in _GROUPS.values()}
        for active in self._active:
            binding = active.binding
            if binding.id is None or not binding.description:
                continue
            prefix = binding.id.partition(".")[0]
            group = groups.setdefault(_GROUPS.get(prefix, prefix.capitalize()), {})
            pressed = self.app.get_key_display(binding)
            known = group.get(binding.action, ("", "", ""))[0].split()
            keys = " ".join(dict.fromkeys([*known, pressed]))
            tooltip = binding.tooltip if not self._wanted else f"{binding.tooltip} ({binding.id})"
            group[binding.action] = (keys, binding.description, tooltip)
        shown = {title: list(rows.values()) for title, rows in groups.items()}
        return {**shown, "Marks of a row": list(_MARKS)}

    def action_search(self) -> None:
        self.app.push_screen(SearchLine(self._wanted, self._seek))

    def _seek(self, words: str) -> None:
        self._wanted = words
        self.query_one("#help-text", Static).update(self._text())

    def action_scroll(self, lines: int) -> None:
        self.query_one("#help", VerticalScroll).scroll_relative(y=lines, animate=False)


def _line(keys: str, name: str, meaning: str) -> Content:
    name = f"{name:<{_NAME_WIDTH}}" if name else ""
    return Content.assemble((f"{keys:<{_KEY_WIDTH}}", "bold $text-accent"), name, (meaning, "dim"))
