"""What every form has: whom it acts on, what is refused, and a way out that is never far.

The targets are fixed when the form opens; what happens to them meanwhile is shown, and a change is
refused when somebody else was first (compare and swap on the entry's version).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from interventions.entry import Entry, names, short_id, state_of
from interventions.putting.occurrences import stands_at
from interventions.queue import InterventionQueue
from interventions.view.plaintext import one_line
from monitor.core.changes import Change, InputError, Outcome, apply, look_again
from monitor.core.form_state import (
    Closed,
    Editing,
    Refused,
    State,
    begin,
    came,
    cancel,
    done,
    stopping,
)
from monitor.keys import key
from monitor.widgets.key_bar import KeyBar

if TYPE_CHECKING:
    from monitor.app import Monitor

_MOST_TOLD, _LEAST_TOLD = 8, 1
_ROWS_OF_THE_REST, _ROWS_OF_A_PROBLEM = 15, 6


class Form(ModalScreen[Outcome | None]):
    """A subclass names the deed, adds its fields, and makes the change from what was typed."""

    DEED: ClassVar[str]
    DONE: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "cancel", "Cancel", "Change nothing", id="form.cancel", show=True),
        key("ctrl+s", "submit", "Do it", "Do it", id="form.submit", show=True),
        key(
            "ctrl+o",
            "go_on",
            "All the same",
            "Go on with the entry as somebody else has changed it",
            id="form.go-on",
            show=True,
        ),
        key("pageup", "scroll(-1)", "Up", "What is above", id="form.up"),
        key("pagedown", "scroll(1)", "Down", "What is below", id="form.down"),
    ]

    def __init__(
        self, queue: InterventionQueue, targets: Sequence[Entry], remark: str = ""
    ) -> None:
        super().__init__()
        self.queue = queue
        self.entries = list(targets)
        self.remark = remark
        self.when_over: Callable[[Outcome | None], None] = lambda outcome: None
        self.when_left: Callable[[Outcome], None] = lambda outcome: None
        self.remarks: list[str] = []
        self.state: State = Editing()
        self._focused: Widget | None = None

    @property
    def monitor(self) -> Monitor:
        return cast("Monitor", self.app)

    def compose(self) -> ComposeResult:
        with Vertical(id="form", classes="box") as box:
            box.border_title = self.title_text()
            yield Static(id="form-entries", markup=False)
            yield Static(id="form-remark", markup=False)
            yield from self.fields()
            problem = Static(id="form-problem", markup=False)
            problem.display = False
            yield problem
            with Horizontal(id="form-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self.DEED, id="confirm", variant="primary", compact=True)
        yield KeyBar()

    def title_text(self) -> Content:
        """Not a string, which would be markup, and the ids in it come from outside."""
        count = len(self.entries)
        which = "1 intervention" if count == 1 else f"{count} interventions"
        ids = names(entry["id"] for entry in self.entries)
        return Content(f"{self.DEED} {which}: {ids}")

    def tell_which(self) -> None:
        """Many in a line each, as many as there is room for; then what else is to be known."""
        rest = _ROWS_OF_THE_REST + _ROWS_OF_A_PROBLEM * self.query_one("#form-problem").display
        most = max(_LEAST_TOLD, min(_MOST_TOLD, self.app.size.height - rest))
        many = len(self.entries) > 1
        lines = [_line(entry) for entry in self.entries[:most]]
        if len(self.entries) > most:
            lines.append(Content.styled(f"and {len(self.entries) - most} more", "dim"))
        entries = self.query_one("#form-entries", Static)
        entries.set_class(many, "-many")
        entries.update(Content("\n").join(lines))
        remarks = self.remarks_before()
        remark = self.query_one("#form-remark", Static)
        remark.update("\n".join(remarks))
        remark.display = bool(remarks)

    def remarks_before(self) -> list[str]:
        """What a person should know of them before they do it."""
        return [self.remark] if self.remark else []

    def fields(self) -> ComposeResult:
        yield from ()

    def change(self) -> Change:
        """From what was typed. Raises InputError."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.tell_which()

    def on_resize(self) -> None:
        self.tell_which()

    def action_submit(self) -> None:
        if not isinstance(self.state, Editing | Refused):
            return
        try:
            change = self.change()
        except InputError as error:
            self.say(str(error))
            return
        self.begin(self.state)
        self._apply(change)

    def action_go_on(self) -> None:
        """With what somebody else has made of them, which the form has told."""
        if isinstance(self.state, Refused):
            newer = self.state.newer
            self.entries = [newer.get(entry["id"], entry) for entry in self.entries]
            self.action_submit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "go_on":
            return isinstance(self.state, Refused) and bool(self.state.newer)
        return True

    @work(thread=True, group="apply")
    def _apply(self, change: Change) -> None:
        app, total = self.monitor, len(self.entries)

        def go_on(tried: int) -> bool:
            if total > 1 and not stopping(self.state):
                app.call_from_thread(self.say, f"working ... {tried}/{total}")
            return not stopping(self.state)

        outcome = apply(self.DONE, self.entries, change, go_on=go_on)
        app.call_from_thread(self._came, look_again(self.queue, outcome, app.clock()))

    def _came(self, outcome: Outcome) -> None:
        outcome = replace(outcome, remarks=tuple(self.remarks))
        newer = {one.entry["id"]: one.now for one in outcome.refused if one.now is not None}
        well = not outcome.refused and not outcome.left
        if not self.stays(outcome, well=well, newer=newer):
            return
        # What was done is done; the form now stands for the rest.
        self.entries = [*(refused.entry for refused in outcome.refused), *outcome.left]
        so_far = done(self.state)
        lines = [f"{self.DONE} {len(so_far)}"] if so_far else []
        lines += [*self.remarks, *outcome.why_not(_MOST_TOLD)]
        if newer:
            lines.append("ctrl+o goes on all the same")
        self.query_one("#form", Vertical).border_title = self.title_text()
        self.tell_which()
        self.refresh_bindings()
        self.say("\n".join(lines))

    def begin(self, state: Editing | Refused) -> None:
        """What is typed from here on would not count, so nothing can be."""
        self.state = begin(state)
        self.monitor.working += 1
        self._focused = self.focused
        for field in self.query(Input):
            field.disabled = True
        self.say("working ...")

    def stays(
        self, outcome: Outcome, *, well: bool, newer: Mapping[str, Entry] | None = None
    ) -> bool:
        """The work is over: whether the form is still there, for what is to be read in it."""
        self.monitor.working -= 1
        if isinstance(self.state, Closed):
            self.when_left(outcome)
            return False
        self.state = came(self.state, outcome.done, well=well, newer=newer or {})
        for field in self.query(Input):
            field.disabled = False
        self.set_focus(self._focused)
        if isinstance(self.state, Closed):
            self.dismiss(self._what_was_done())
        return isinstance(self.state, Refused)

    def saw(self, entries: Sequence[Entry]) -> None:
        """The queue changed while the form is open."""
        if not isinstance(self.state, Editing):  # what was refused says more
            return
        moment = self.monitor.clock()
        now = {entry["id"]: entry for entry in entries}
        changed = [
            f"{short_id(own['id'])} is {state_of(current, moment)} now"
            for own in self.entries
            if (current := now.get(own["id"])) is not None and current["version"] != own["version"]
        ]
        if changed:
            self.say("changed by somebody else meanwhile: " + ", ".join(changed))

    def say(self, text: str) -> None:
        """What went wrong, or how far it is: in sight, whatever else is not."""
        problem = self.query_one("#form-problem", Static)
        if bool(text) != problem.display:
            problem.display = bool(text)
            self.tell_which()
        problem.update(text)
        self.call_after_refresh(self.query_one("#form", Vertical).scroll_end, animate=False)

    def action_scroll(self, direction: int) -> None:
        box = self.query_one("#form", Vertical)
        box.scroll_relative(y=direction * max(box.size.height - 2, 1))

    def action_yes(self) -> None:
        """Where a letter confirms: never the one that opened the form."""
        self.action_submit()

    def action_cancel(self) -> None:
        """While it works: begin no further one; once more: leave it to end by itself."""
        if isinstance(self.state, Closed):
            return
        self.state = cancel(self.state)
        if isinstance(self.state, Closed):
            self.dismiss(self._what_was_done() if self.state.done else None)
        else:
            self.say("no further one is begun; esc again leaves this to end by itself")

    def _what_was_done(self) -> Outcome:
        return Outcome(self.DONE, done(self.state), remarks=tuple(self.remarks))

    @on(Button.Pressed, "#cancel")
    def _cancel_pressed(self) -> None:
        self.action_cancel()

    @on(Button.Pressed, "#confirm")
    def _confirm_pressed(self) -> None:
        self.action_submit()

    @on(Input.Submitted)
    def _input_submitted(self) -> None:
        self.action_submit()


def _line(entry: Entry) -> Content:
    now = stands_at(entry)
    what = one_line(f"{now.get('error_type')}: {now.get('error_message')}")[:200]
    return Content.assemble((short_id(entry["id"]), "bold"), f"  {what}")
