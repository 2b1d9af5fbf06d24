"""Resume turns, watch their phases, and resolve what they get past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Button, Static

from interventions.entry import Entry
from interventions.errors import QueueError
from interventions.putting.occurrences import stands_at
from interventions.retry.contract import RetryRequest
from interventions.retry.retry_many import Waiting, waiting
from interventions.retry.retry_one import how_it_went, retry_and_resolve
from monitor.core.changes import VIA, Change, InputError
from monitor.core.form_state import Editing, Refused
from monitor.forms.retry_all import RetryAllForm
from monitor.forms.retry_fields import PERMISSION, UNSAID, RetryFields, watched
from monitor.forms.settle import ask_in
from monitor.keys import key


class RetryForm(RetryFields):
    """Where more turns wait for the same fix it leads to the form for all of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        key("ctrl+t", "all_alike", "All alike", "Retry all alike", id="form.all", show=True),
    ]

    @dataclass
    class Found(Message):
        turns: list[Waiting]

    _alike: Sequence[Waiting] = ()

    def on_mount(self) -> None:
        super().on_mount()
        self._look_for_alike()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "all_alike":
            return bool(self._alike) or None
        return super().check_action(action, parameters)

    def change(self) -> Change:
        note, grant = self.note(), self.grant()

        def one(entry: Entry) -> Entry:
            # A turn that asked a person goes on with their answer, not with our words.
            request = RetryRequest(
                entry["turn_id"],
                entry["id"],
                note,
                answer=None if note == UNSAID else note,
                grant=grant if stands_at(entry)["type"] == PERMISSION else None,
                via=VIA,
                ask=partial(ask_in, self.monitor),
            )
            with watched(self.queue.home, [entry["turn_id"]], self.tell_progress):
                version = entry["version"]
                retried = retry_and_resolve(self.queue, request, expected_version=version)
            if not retried.result.went_well:
                self.remarks += how_it_went(entry, retried.result)
            return retried.entry

        return one

    @work(thread=True, group="alike")
    def _look_for_alike(self) -> None:
        if len({entry["fingerprint"] for entry in self.entries}) > 1:
            return  # that one of them works says nothing about the others
        try:
            found = waiting(self.entries[0], self.queue.entries())
        except QueueError:
            return  # the list says what is the matter with the queue
        self.post_message(self.Found(found))

    @on(Found)
    async def _found(self, message: Found) -> None:
        if len(message.turns) < 2:
            return
        self._alike = message.turns
        count = len(message.turns)
        if isinstance(self.state, Editing | Refused):
            self.query_one("#retry-progress", Static).update(
                f"{count} turns wait for the same fix. All {count} alike: one is tried first, and "
                f"only if it gets past its phase, the other {count - 1}; what passes is resolved"
            )
        await self.query_one("#form-buttons", Horizontal).mount(
            Button(f"All {count} alike", id="all-alike", compact=True)
        )
        self.refresh_bindings()

    @on(Button.Pressed, "#all-alike")
    def action_all_alike(self) -> None:
        if not isinstance(self.state, Editing | Refused) or not self._alike:
            return
        try:
            form = RetryAllForm(self.queue, self._alike, self.note(), self.grant())
        except InputError as error:
            self.say(str(error))
            return
        form.when_over, form.when_left = self.when_over, self.when_left
        self.action_cancel()
        self.app.push_screen(form, form.when_over)
