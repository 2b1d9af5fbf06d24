"""Turns go on: those of failures, of which what they get past is resolved, and interrupted ones.

While one works its form shows the phases of the turns, and a person is asked about a call that may
have written."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, get_args

from textual import work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Static

from interventions.entry import ESCALATION, Entry, is_open, latest_failure, short_ids
from interventions.errors import NoResumerError, QueueError
from interventions.plaintext import first_of, one_line
from interventions.retry import contract, retries
from monitor.core.app_state import VIA, Change, ChangeOutcome, InputError, apply
from monitor.core.feeds import foreign_error, redacted
from monitor.forms.form import Form, Job
from monitor.forms.menu import Menu
from monitor.widgets.keys import key
from monitor.widgets.turn_text import progress_line

JOBS = 4
DEFAULT_NOTE = "the retry went through"
PERMISSION = "permission"
SCOPES: tuple[contract.Scope, ...] = get_args(contract.Scope)
_MOST_PROBLEMS = 6
_POLL_S = 0.2


class TurnForm(Form):
    """Shows the phases of its turns as they run, where the journals can be read."""

    running: Sequence[int] = ()  # numbers of turns, in the order in which they begin
    tried: Sequence[retries.RetriedTurn] = ()  # those of them that ended

    @cached_property
    def _reader(self) -> contract.TurnReader:
        return contract.find_turn_reader()

    def progress(self) -> Content:
        ended = {one.turn_id for one in self.tried}
        left = [turn for turn in self.running if turn not in ended]
        lines, total = list[Content](), len(self.running)
        if total > 1:
            said = retries.tally(self.tried) if self.tried else "one is tried first"
            lines.append(Content(f"{len(self.tried)} of {total} turns: {said}"))
        try:
            found = [self._reader.turn(self.queue.home, turn) for turn in left[:JOBS]]
            lines += [progress_line(redacted(turn)) for turn in found if turn]
        except NoResumerError:
            pass  # nothing reads turns here
        except Exception as error:  # noqa: BLE001 - a foreign reader
            lines.append(Content(f"the phases are not known: {foreign_error(error)}"))
        return Content("\n").join(lines)


class ResumeForm(TurnForm):
    """An interrupted turn, which no entry is about, goes on."""

    VERB, DONE, CAN_BE_UNDONE = "Resume", "resumed", False
    AUTO_FOCUS = "#confirm"
    HINT = "it goes on from the phase in which it was interrupted"

    def heading(self) -> Content:
        return Content(f"Resume turn {self.entries[0]['turn_id']}")

    def target_lines(self, entries: Sequence[Entry]) -> list[Content]:
        turn = entries[0]
        session = one_line(f"session {turn['session_id']}")
        return [Content(one_line(turn["error_message"])[:200]), Content(session)]

    def change(self) -> Change:
        def resume(turn: Entry) -> Entry:
            self.running = [turn["turn_id"]]
            ask = partial(ask_about_call, self.app)
            request = contract.RetryRequest(turn["turn_id"], None, note="", via=VIA, ask=ask)
            resumer = contract.find_resumer()
            try:
                result = retries.retry(self.queue.home, request, resumer)
            finally:
                contract.done_with(resumer)
            if result.failed:
                raise InputError(f"failed in {result.phase or 'a phase'}: {result.message}")
            self.remarks += retries.result_lines(turn, result)
            return turn

        return resume


class RetryForm(TurnForm):
    """Retries the chosen entries one by one. Where more turns wait for the same fix, it can retry
    all alike, as `interventions retry ID --all` does: one of them first, and only if that helps,
    the others."""

    VERB, DONE, CLOSES = "Retry", "retried and resolved", True
    HINT = "the turn goes on from the phase that failed; it is resolved only if that works"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("ctrl+t", "all(False)", "All alike", "Retry all alike", id="form.all"),
        key("ctrl+r", "all(True)", "Others, too", "Others that wait, too", id="form.all-others"),
    ]

    _is_question = False
    _waiting: Sequence[retries.WaitingTurn] = ()
    _turns: Sequence[retries.WaitingTurn] = ()  # of those, once somebody asked for them

    def heading(self) -> Content:
        if not self._turns:
            return super().heading()
        ids = short_ids(entry["id"] for entry in self.entries)
        alike = " alike" if all(turn.alike for turn in self._turns) else ""
        return Content(f"{self.VERB} {len(self._turns)} turns{alike}: {ids}")

    def fields(self) -> ComposeResult:
        failures = [latest_failure(entry) for entry in self.entries]
        self._is_question = any(failure["type"] == ESCALATION for failure in failures)
        about = "your answer: the turn goes on with it" if self._is_question else "what you mended"
        yield Input("" if self._is_question else DEFAULT_NOTE, placeholder=about, id="typed")
        if tools := {str(f.get("tool") or "?") for f in failures if f["type"] == PERMISSION}:
            yield Input(placeholder=f"allow it: {', '.join(SCOPES)}", id="grant")
            yield Static(
                f"{one_line(', '.join(sorted(tools)))} was refused; without a word it still is",
                classes="hint",
                markup=False,
            )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "all":
            return len(self._alike()) > 1 or None if parameters == (False,) else self._has_others()
        return super().check_action(action, parameters)

    def _alike(self) -> list[retries.WaitingTurn]:
        return [turn for turn in self._waiting if turn.alike]

    def _has_others(self) -> bool:
        return len(self._alike()) < len(self._waiting)

    def on_mount(self) -> None:
        self._find_alike()

    @work
    async def _find_alike(self) -> None:
        if len({entry["fingerprint"] for entry in self.entries}) > 1:
            return  # that one of them works says nothing about the others
        try:
            entries = await asyncio.to_thread(self.queue.entries)
        except QueueError:
            return  # the list says what is the matter with the queue
        waiting = retries.waiting_turns(self.entries[0], entries)
        if len(waiting) < 2:
            return
        self._waiting = waiting
        count, total = len(self._alike()), len(waiting)
        hints = []
        if count > 1:
            hints.append(
                f"ctrl+t: All {count} alike: one is tried first, and only if it gets past its "
                f"phase, the other {count - 1}; what passes is resolved"
            )
        if self._has_others():
            other = f"{total - count} failed with another failure: this may be no fix for it"
            hints += [f"ctrl+r: All {total}, others too", other]
        if self.can_start:
            self._show("#form-hint", "\n".join(hints))
        self.refresh_bindings()

    def _request(self) -> contract.RetryRequest:
        """What was typed, without the turn. Raises InputError."""
        note = self.typed()
        if not note:
            question = "the turn asked a question: what is the answer?"
            raise InputError(question if self._is_question else "a resolution needs a note")
        # Nothing is granted unless somebody typed it.
        word = next((i.value.strip().lower() for i in self.query("#grant").results(Input)), "")
        grant = next((scope for scope in SCOPES if word and scope.startswith(word)), None)
        if word and grant is None:
            raise InputError(f"{word!r} allows nothing: {', '.join(SCOPES)}, or leave it empty")
        return contract.RetryRequest(0, None, note, grant=grant, via=VIA)

    def job(self) -> Job:
        return partial(self._retry_all, self._request()) if self._turns else super().job()

    def change(self) -> Change:
        typed = self._request()

        def retry_one(entry: Entry) -> Entry:
            # A turn that asked a person goes on with their answer, not with our words.
            request = replace(
                typed,
                turn_id=entry["turn_id"],
                intervention_id=entry["id"],
                answer=None if typed.note == DEFAULT_NOTE else typed.note,
                grant=typed.grant if latest_failure(entry)["type"] == PERMISSION else None,
                ask=partial(ask_about_call, self.app),
            )
            self.running = [entry["turn_id"]]
            version = entry["version"]
            after, result = retries.retry_entry(self.queue, request, expected_version=version)
            if is_open(after):
                raise contract.StillOpenError(after, result)
            if result.failed:
                self.remarks += retries.result_lines(entry, result)
            return after

        return retry_one

    def action_all(self, others: bool) -> None:
        turns = self._waiting if others else self._alike()
        if self.can_start and turns:
            self._turns = turns
            self.target_note = ""  # it is about the chosen ones
            self.entries = list({turn.entry["id"]: turn.entry for turn in turns}.values())
            self.action_submit()

    def _retry_all(self, request: contract.RetryRequest) -> ChangeOutcome:
        turns = {turn.turn_id: turn.named for turn in self._turns}
        tried = list[retries.RetriedTurn]()
        self.running, self.tried, self.remarks = list(turns), tried, []

        def closed(entry: Entry) -> Entry:
            now = self.queue.find(entry["id"])
            if is_open(now):
                raise InputError("stays open")
            return now

        try:
            retries.retry_all(
                turns,
                self.queue.home,
                request,
                jobs=JOBS,
                progress=lambda outcome, done, total: tried.append(outcome),
                stop=lambda: self.stops,
            )
        except QueueError as error:
            self.remarks.append(f"{error} ({error.hint})")
        self._turns = ()
        outcome = apply(self.DONE, self.entries, closed)
        if outcome.refused or [one.status for one in tried] != ["passed"] * len(turns):
            self.remarks += summary(tried)
        return outcome


def summary(tried: Sequence[retries.RetriedTurn]) -> list[str]:
    """The counts, then what did not pass: failures first, skipped for one reason together."""
    failed = [f"turn {o.turn_id} failed: {o.what[:300]}" for o in tried if o.status == "failed"]
    reasons = Counter(one.what[:300] for one in tried if one.status == "skipped")
    lines = [*failed, *(f"{count} skipped: {reason}" for reason, count in reasons.items())]
    return [retries.tally(tried), *first_of(lines, _MOST_PROBLEMS)]


def ask_about_call(app: App[Any], call: contract.BegunCall) -> contract.CallDecision:
    """Run the call again, count it as done, or leave the turn, which changes nothing and is what
    Enter does. From the thread of a retry: waits for the person, or the end of the monitor."""
    choices: dict[contract.CallDecision, str] = {"leave": "Leave the turn", "again": "Run it again"}
    if call.unfinished:
        choices["done"] = "Count it as done"
    menu = Menu(f"Turn {call.turn_id}", list(choices.values()), text=str(call))
    answer = Future[tuple[str, int] | None]()
    try:
        app.call_from_thread(app.push_screen, menu, answer.set_result)
    except RuntimeError:
        return "leave"
    while app.is_running:
        try:
            chosen = answer.result(timeout=_POLL_S)
        except TimeoutError:
            continue
        return list(choices)[chosen[1]] if chosen else "leave"
    return "leave"
