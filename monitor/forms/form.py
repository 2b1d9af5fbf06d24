"""What every form has: whom it acts on, what is refused, and a way out that is never far.

The targets are fixed when the form opens; what happens to them meanwhile is shown, and a change is
refused when somebody else was first (compare and swap on the entry's version).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Input, Static

from interventions.entry import Entry, short_id, state_of
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.timestamps import utc_now
from monitor.changes import Change, Outcome, apply
from monitor.keys import key
from monitor.listing import names

_MOST_TOLD = 8


class InputError(Exception):
    """What was typed cannot be used; `str` says why."""


class Form(ModalScreen[Outcome | None]):
    """A subclass names the deed, adds its fields, and makes the change from what was typed."""

    DEED: ClassVar[str]
    DONE: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "cancel", "Cancel", "Change nothing", id="form.cancel", show=True),
        key("ctrl+s", "submit", "Do it", "Do it", id="form.submit", show=True),
    ]

    @dataclass
    class Applied(Message):
        outcome: Outcome

    def __init__(
        self, queue: InterventionQueue, targets: Sequence[Entry], remark: str = ""
    ) -> None:
        super().__init__()
        self.queue = queue
        self.entries = list(targets)
        self.remark = remark
        self._done: tuple[Entry, ...] = ()
        self._working = False
        self._refused = False

    def compose(self) -> ComposeResult:
        with Vertical(id="form", classes="box") as box:
            box.border_title = self.title_text()
            with VerticalScroll(id="form-what"):
                yield Static(self.what(), markup=False)
            yield from self.fields()
            problem = Static(id="form-problem", markup=False)
            problem.display = False
            yield problem
            with Horizontal(id="form-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self.DEED, id="confirm", variant="primary", compact=True)
        yield Footer(compact=True, show_command_palette=False)

    def title_text(self) -> str:
        count = len(self.entries)
        which = "1 intervention" if count == 1 else f"{count} interventions"
        return f"{self.DEED} {which}: {names(self.entries)}"

    def what(self) -> Content:
        """Which they are, in words."""
        lines = [
            Content.assemble(
                (short_id(entry["id"]), "bold"),
                f"  {one_line(entry['error_type'] + ': ' + entry['error_message'])[:300]}",
            )
            for entry in self.entries[:_MOST_TOLD]
        ]
        if len(self.entries) > _MOST_TOLD:
            lines.append(Content.styled(f"and {len(self.entries) - _MOST_TOLD} more", "dim"))
        if self.remark:
            lines.append(Content.styled(self.remark, "$text-warning"))
        return Content("\n").join(lines)

    def fields(self) -> ComposeResult:
        yield from ()

    def change(self) -> Change:
        """From what was typed. Raises InputError."""
        raise NotImplementedError

    # -- doing it --------------------------------------------------------------------------------

    def action_submit(self) -> None:
        if self._working:
            return
        try:
            change = self.change()
        except InputError as error:
            self.say(str(error))
            return
        self._working = True
        self.say("working ...")
        self._apply(change)

    @work(thread=True, group="apply")
    def _apply(self, change: Change) -> None:
        self.post_message(self.Applied(apply(self.DONE, self.entries, change)))

    @on(Applied)
    def _applied(self, message: Applied) -> None:
        self._working = False
        outcome = message.outcome
        self._done += outcome.done
        if not outcome.refused:
            self.dismiss(Outcome(self.DONE, self._done))
            return
        self._refused = True
        # What was done is done; the form now stands for the rest.
        self.entries = [refused.entry for refused in outcome.refused]
        lines = [f"{self.DONE} {len(self._done)}"] if self._done else []
        lines += [f"{short_id(r.entry['id'])}: {r.why}" for r in outcome.refused[:_MOST_TOLD]]
        self.query_one("#form", Vertical).border_title = self.title_text()
        self.say("\n".join(lines))

    def saw(self, entries: Sequence[Entry]) -> None:
        """The queue changed while the form is open."""
        if self._working or self._done or self._refused:  # what was refused says more
            return
        now = {entry["id"]: entry for entry in entries}
        changed = [
            f"{short_id(own['id'])} is {state_of(current, utc_now())} now"
            for own in self.entries
            if (current := now.get(own["id"])) is not None and current["version"] != own["version"]
        ]
        if changed:
            self.say("changed by somebody else meanwhile: " + ", ".join(changed))

    def say(self, text: str) -> None:
        problem = self.query_one("#form-problem", Static)
        problem.update(text)
        problem.display = bool(text)

    def action_yes(self) -> None:
        """Where a letter confirms: never the one that opened the form."""
        self.action_submit()

    def action_cancel(self) -> None:
        if not self._working:
            self.dismiss(Outcome(self.DONE, self._done) if self._done else None)

    @on(Button.Pressed, "#cancel")
    def _cancel_pressed(self) -> None:
        self.action_cancel()

    @on(Button.Pressed, "#confirm")
    def _confirm_pressed(self) -> None:
        self.action_submit()

    @on(Input.Submitted)
    def _input_submitted(self) -> None:
        self.action_submit()
