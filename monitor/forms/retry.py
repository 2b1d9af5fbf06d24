"""Resume turns, watch their phases, and resolve what they get past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, get_args

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Static

from interventions.entry import ESCALATION, Entry, is_open, latest_failure, short_ids
from interventions.errors import QueueError
from interventions.plaintext import one_line
from interventions.retry.contract import RetryRequest, Scope, StillOpenError
from interventions.retry.retries import (
    RetriedTurn,
    WaitingTurn,
    result_lines,
    retry_all,
    retry_entry,
    waiting_turns,
)
from monitor.core.app_state import VIA, Change, ChangeOutcome, InputError, apply
from monitor.forms.form import Job
from monitor.forms.retry_run import (
    JOBS,
    TurnForm,
    ask_about_call,
    progress,
    summary,
    watched_turns,
)
from monitor.widgets.keys import key

DEFAULT_NOTE = "the retry went through"
PERMISSION = "permission"
SCOPES: tuple[Scope, ...] = get_args(Scope)


class RetryForm(TurnForm):
    """Retries the chosen entries one by one. Where more turns wait for the same fix, it can retry
    all alike, as `interventions retry ID --all` does: one of them first, and only if that helps,
    the others."""

    VERB = "Retry"
    DONE = "retried and resolved"
    CLOSES = True
    HINT = "the turn goes on from the phase that failed; it is resolved only if that works"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("ctrl+t", "all(False)", "All alike", "Retry all alike", id="form.all"),
        key("ctrl+r", "all(True)", "Others, too", "Others that wait, too", id="form.all-others"),
    ]

    @dataclass
    class AlikeFound(Message):
        turns: list[WaitingTurn]

    _is_question = False
    _waiting: Sequence[WaitingTurn] = ()
    _turns: Sequence[WaitingTurn] = ()  # of those, once somebody asked for them

    def heading(self) -> Content:
        if not self._turns:
            return super().heading()
        ids = short_ids(entry["id"] for entry in self.entries)
        alike = " alike" if all(turn.alike for turn in self._turns) else ""
        return Content(f"{self.VERB} {len(self._turns)} turns{alike}: {ids}")

    def fields(self) -> ComposeResult:
        failures = [latest_failure(entry) for entry in self.entries]
        self._is_question = any(failure["type"] == ESCALATION for failure in failures)
        if self._is_question:
            yield Input(placeholder="your answer: the turn goes on with it", id="note")
        else:
            yield Input(DEFAULT_NOTE, placeholder="what you mended", id="note")
        if tools := {str(f.get("tool") or "?") for f in failures if f["type"] == PERMISSION}:
            yield Input(placeholder=f"allow it: {', '.join(SCOPES)}", id="grant")
            yield Static(
                f"{one_line(', '.join(sorted(tools)))} was refused; without a word it still is",
                id="grant-hint",
                classes="hint",
                markup=False,
            )
        yield from super().fields()

    def on_mount(self) -> None:
        self._find_alike()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "all":
            return len(self._alike()) > 1 or None if parameters == (False,) else self._has_others()
        return super().check_action(action, parameters)

    def _alike(self) -> list[WaitingTurn]:
        return [turn for turn in self._waiting if turn.alike]

    def _has_others(self) -> bool:
        return len(self._alike()) < len(self._waiting)

    def _request(self) -> RetryRequest:
        """What was typed, without the turn. Raises InputError."""
        note = self.typed("note")
        if not note:
            question = "the turn asked a question: what is the answer?"
            raise InputError(question if self._is_question else "a resolution needs a note")
        # Nothing is granted unless somebody typed it.
        word = next((i.value.strip().lower() for i in self.query("#grant").results(Input)), "")
        grant = next((scope for scope in SCOPES if word and scope.startswith(word)), None)
        if word and grant is None:
            raise InputError(f"{word!r} allows nothing: {', '.join(SCOPES)}, or leave it empty")
        return RetryRequest(0, None, note, grant=grant, via=VIA)

    def job(self) -> Job:
        return partial(self._retry_all, self._request()) if self._turns else super().job()

    def change(self) -> Change:
        typed = self._request()

        def retry(entry: Entry) -> Entry:
            # A turn that asked a person goes on with their answer, not with our words.
            request = replace(
                typed,
                turn_id=entry["turn_id"],
                intervention_id=entry["id"],
                answer=None if typed.note == DEFAULT_NOTE else typed.note,
                grant=typed.grant if latest_failure(entry)["type"] == PERMISSION else None,
                ask=partial(ask_about_call, self.app),
            )
            with watched_turns(self.queue.home, [entry["turn_id"]], self.show_progress):
                retried = retry_entry(self.queue, request, expected_version=entry["version"])
            if not retried.resolved:
                raise StillOpenError(retried)
            if retried.result.failed:
                self.remarks += result_lines(entry, retried.result)
            return retried.entry

        return retry

    @work(thread=True, group="alike")
    def _find_alike(self) -> None:
        if len({entry["fingerprint"] for entry in self.entries}) > 1:
            return  # that one of them works says nothing about the others
        try:
            found = waiting_turns(self.entries[0], self.queue.entries())
        except QueueError:
            return  # the list says what is the matter with the queue
        self.post_message(self.AlikeFound(found))

    @on(AlikeFound)
    async def _alike_found(self, message: AlikeFound) -> None:
        if len(message.turns) < 2:
            return
        self._waiting = message.turns
        count, total = len(self._alike()), len(message.turns)
        buttons, hints = [], []
        if count > 1:
            buttons.append(_button(f"All {count} alike", "all-alike", others=False))
            hints.append(
                f"{count} turns wait for the same fix. All {count} alike: one is tried first, and "
                f"only if it gets past its phase, the other {count - 1}; what passes is resolved"
            )
        if self._has_others():
            buttons.append(_button(f"All {total}, others too", "all-others", others=True))
            hints.append(f"{total - count} failed with another failure: this may be no fix for it")
        if self.state.can_start:
            self.query_one("#retry-progress", Static).update("\n".join(hints))
        await self.query_one("#form-buttons", Horizontal).mount(*buttons)
        self.refresh_bindings()

    def action_all(self, others: bool) -> None:
        turns = self._waiting if others else self._alike()
        if self.state.can_start and turns:
            self._turns = turns
            self.target_note = ""  # it is about the chosen ones
            self.entries = list({turn.entry["id"]: turn.entry for turn in turns}.values())
            self.show_targets()
            self.action_submit()

    def _retry_all(self, request: RetryRequest) -> ChangeOutcome:
        home, tried = self.queue.home, list[RetriedTurn]()
        turns = {turn.turn_id: turn.named for turn in self._turns}

        def count(outcome: RetriedTurn, done: int, total: int) -> None:
            tried.append(outcome)
            self.show_progress((), progress(tried, total))

        def closed(entry: Entry) -> Entry:
            now = self.queue.find(entry["id"])
            if is_open(now):
                raise InputError("stays open")
            return now

        self.remarks = []
        with watched_turns(home, list(turns), self.show_progress, tried):
            try:
                retry_all(
                    turns, home, request, jobs=JOBS, progress=count, stop=lambda: self.state.stops
                )
            except QueueError as error:
                self.remarks.append(f"{error} ({error.hint})")
        outcome = apply(self.DONE, self.entries, closed)
        if outcome.refused or [one.status for one in tried] != ["passed"] * len(turns):
            self.remarks += summary(tried)
        return outcome


def _button(label: str, name: str, *, others: bool) -> Button:
    return Button(label, id=name, action=f"screen.all({others})", compact=True)
