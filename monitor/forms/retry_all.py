"""All turns that wait for one fix: one of them first, and only if that helps, the others.

It is `interventions retry ID --all`.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import work
from textual.content import Content
from textual.widgets import Input

from interventions.entry import Entry, is_open, names
from interventions.errors import QueueError
from interventions.queue import InterventionQueue
from interventions.retry.contract import RetryRequest, Scope
from interventions.retry.retry_many import Outcome as Tried
from interventions.retry.retry_many import Waiting, retry_all
from monitor import retries
from monitor.core.changes import VIA, InputError, Outcome, apply
from monitor.core.form_state import Editing, Refused, stopping
from monitor.forms.retry_fields import JOBS, RetryFields, watched


class RetryAllForm(RetryFields):
    """It begins at once, with what was typed in the form from which it comes; if something is left
    that can be mended, it can be sent again."""

    def __init__(
        self, queue: InterventionQueue, turns: Sequence[Waiting], note: str, grant: Scope | None
    ) -> None:
        entries = {turn.entry["id"]: turn.entry for turn in turns}
        super().__init__(queue, list(entries.values()))
        self._turns = list(turns)
        self._typed = {"note": note, "grant": grant or ""}

    def title_text(self) -> Content:
        ids = names(entry["id"] for entry in self.entries)
        return Content(f"{self.DEED} {len(self._turns)} turns alike: {ids}")

    def on_mount(self) -> None:
        super().on_mount()
        for field in self.query(Input):
            field.value = self._typed.get(field.id or "", "")
        self.action_submit()

    def action_submit(self) -> None:
        if not isinstance(self.state, Editing | Refused):
            return
        first = self._turns[0]
        try:
            request = RetryRequest(
                first.turn_id, first.entry["id"], self.note(), grant=self.grant(), via=VIA
            )
        except InputError as error:
            self.say(str(error))
            return
        self.begin(self.state)
        self._retry_all(request)

    @work(thread=True, group="apply")
    def _retry_all(self, request: RetryRequest) -> None:
        app, home, tried = self.monitor, self.queue.home, list[Tried]()

        def progress(outcome: Tried, done: int, total: int) -> None:
            tried.append(outcome)
            self.tell_progress((), retries.so_far(tried, total))

        problem = ""
        with watched(home, [turn.turn_id for turn in self._turns], self.tell_progress, tried):
            try:
                retry_all(
                    self._turns,
                    home,
                    request,
                    jobs=JOBS,
                    progress=progress,
                    stop=lambda: stopping(self.state),
                )
            except QueueError as error:
                problem = f"{error} ({error.hint})"
        told = [*filter(None, [problem]), *retries.summary(tried)]
        all_passed = len(tried) == len(self._turns) and all(one.came == "passed" for one in tried)
        app.call_from_thread(self._all_came, self._resolved(), told, all_passed)

    def _resolved(self) -> tuple[Entry, ...]:
        found = apply("", self.entries, lambda entry: self.queue.find(entry["id"])).done
        return tuple(entry for entry in found if not is_open(entry))

    def _all_came(self, closed: tuple[Entry, ...], told: list[str], all_passed: bool) -> None:
        outcome = Outcome(self.DONE, closed, remarks=tuple(told))
        if self.stays(outcome, well=all_passed and bool(closed)):
            self.say("\n".join(told))
