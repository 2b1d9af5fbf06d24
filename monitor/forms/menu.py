"""A few things of which one is chosen, by its number or with the arrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from monitor.widgets.keys import KeyBar, hidden_key, key

_MOST = 9


class Menu(ModalScreen[tuple[str, int] | None]):
    """Closes with what is done (`choose`, or `run` in a menu of commands) and the number of the
    line. A command is copied, or done here: by the form or the place that does the same."""

    BINDINGS: ClassVar[list[BindingType]] = [
        key("x", "run", "Do it here", "What the command does", id="menu.run"),
        key("escape,q", "dismiss", "Cancel", "None of them", id="menu.cancel"),
        hidden_key("j", "app.simulate_key('down')", "Down", "One down", id="menu.down"),
        hidden_key("k", "app.simulate_key('up')", "Up", "One up", id="menu.up"),
        *(
            hidden_key(str(n), f"number({n})", f"Line {n}", "Choose that", id=f"menu.{n}")
            for n in range(1, _MOST + 1)
        ),
    ]

    def __init__(
        self, title: str, lines: Sequence[str], *, text: str = "", of_commands: bool = False
    ) -> None:
        super().__init__()
        self._title, self._lines, self._text = title, lines, text
        self._of_commands = of_commands

    def compose(self) -> ComposeResult:
        with Vertical(id="form", classes="box") as box:
            box.border_title = Content(self._title)
            if self._text:
                yield Static(self._text, markup=False)
            copies = "copies · x does it here" if self._of_commands else "chooses"
            box.border_subtitle = f"⏎ or its number {copies}"
            lines = enumerate(self._lines, 1)
            yield OptionList(
                *(Content.assemble((f"{number} ", "bold"), line) for number, line in lines),
                compact=True,
            )
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._of_commands or action != "run"

    def action_number(self, number: int) -> None:
        if number <= len(self._lines):
            self.dismiss(("choose", number - 1))

    def action_run(self) -> None:
        self.dismiss(("run", self.query_one(OptionList).highlighted or 0))

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(("choose", message.option_index))
