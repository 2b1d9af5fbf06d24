"""What every key does, and what the marks of a row mean."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from monitor.screens.tabs import BADGES
from monitor.widgets.keys import hidden_key
from monitor.widgets.search_line import SearchLine
from monitor.widgets.text_view import Part, TextView

_KEY_WIDTH, _NAME_WIDTH = 12, 15
# A group, keys, a name, what it does, and an id.
Row = tuple[str, str, str, str, str]
# By what the ids begin with, in the order of the help.
_GROUPS = {
    "act": "Change",
    "open": "Look closer",
    "list": "The list",
    "sort": "Sort",
    "read": "In the detail",
    "tab": "Tabs",
    "go": "Go to",
    "copy": "Copy",
    "live": "Updates",
    "trends": "Trends",
    "move": "Move",
    "leave": "Leave",
}
_MARKS: list[Row] = [
    ("Marks of a row", mark, "", meaning, "")
    for mark, meaning in (
        *((word, meaning) for word, _, meaning in BADGES.values()),
        ("▸4  ▾4", "a cause of 4 entries, folded and unfolded (f)"),
        ("+2", "holds 2 other failures; its colour is the worst of them"),
        ("✓  -", "marked; some of a cause are marked"),
    )
]


class HelpScreen(ModalScreen[None]):
    """Made from the bindings that are alive where `?` was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        hidden_key("escape,q,question_mark", "dismiss", "Back", "Back", id="help.back")
    ]

    def __init__(self, bindings: Sequence[ActiveBinding]) -> None:
        super().__init__()
        self._active = bindings

    def compose(self) -> ComposeResult:
        with Vertical(id="help", classes="box") as box:
            box.border_title = "Keys"
            box.border_subtitle = "/ search  esc back"
            yield HelpText(self._rows())
        yield SearchLine(id="search")

    def _rows(self) -> list[Row]:
        found = dict[str, Row]()
        for binding in (active.binding for active in self._active):
            if binding.id and binding.description:
                title, action = _GROUPS[binding.id.partition(".")[0]], binding.action
                known = found[action][1].split() if action in found else []
                keys = " ".join(dict.fromkeys([*known, self.app.get_key_display(binding)]))
                row = (title, keys, binding.description, binding.tooltip, binding.id)
                found[action] = row
        order = list(_GROUPS.values())
        return [*sorted(found.values(), key=lambda row: order.index(row[0])), *_MARKS]


class HelpText(TextView):
    """In a search it has the lines alone that have all the words, with the ids of the keys."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__(id="help-text")
        self._rows = rows

    def on_mount(self) -> None:
        self.seek("")

    def seek(self, words: str) -> None:
        wanted = words.lower().split()
        found = [row for row in self._rows if all(w in " ".join(row).lower() for w in wanted)]
        parts = [
            Part(title, [_line(row, with_id=bool(wanted)) for row in rows])
            for title, rows in groupby(found, itemgetter(0))
        ]
        self.show_text(parts or [Part("", [Content("no key has these words")])], key="help")
        super().seek(words)


def _line(row: Row, *, with_id: bool) -> Content:
    _, keys, name, meaning, key_id = row
    name = f"{name:<{_NAME_WIDTH}}" if name else ""
    meaning += f" ({key_id})" if with_id and key_id else ""
    return Content.assemble((f"{keys:<{_KEY_WIDTH}}", "bold $text-accent"), name, (meaning, "dim"))
