"""The line in which a query is typed; it filters while one types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from monitor.keys import key


class _Query(Input):
    # Its own keys, because an input has others for them already.
    BINDINGS: ClassVar[list[BindingType]] = [
        key("enter,down", "submit", "To the list", "Keep the filter", id="filter.done", show=True),
    ]


class FilterBar(Horizontal):
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "clear", "Clear", "No filter", id="filter.clear", show=True),
    ]

    @dataclass
    class Typed(Message):
        text: str

    @dataclass
    class Done(Message):
        """Back to the list; the filter stays as it is."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static("/", id="filter-slash", markup=False)
        yield _Query(
            placeholder="sev:critical phase:planner type:captcha is:snoozed age:>1h text",
            id="filter-text",
            compact=True,
        )
        yield Static(id="filter-problem", markup=False)

    @property
    def text(self) -> str:
        return self.query_one(Input).value

    def open(self) -> None:
        self.display = True
        self.query_one(Input).focus()

    def say(self, problem: str) -> None:
        self.query_one("#filter-problem", Static).update(problem)
        self.set_class(bool(problem), "-bad")

    def action_clear(self) -> None:
        self.query_one(Input).value = ""
        self.display = False
        self.post_message(self.Done())

    def action_done(self) -> None:
        self.display = bool(self.text.strip())
        self.post_message(self.Done())

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Typed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_done()
