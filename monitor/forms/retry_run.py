"""While a retry runs: how far it is, and the question of what becomes of a call that may have
written."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Static

from interventions.entry import Entry
from interventions.errors import NoResumerError
from interventions.plaintext import one_line
from interventions.retry.contract import (
    BegunCall,
    CallDecision,
    LiveTurn,
    RetryRequest,
    done_with,
    find_resumer,
    find_turn_reader,
)
from interventions.retry.retries import RetriedTurn, result_lines, retry, tally
from monitor.core.app_state import VIA, Change, InputError
from monitor.core.feeds import foreign_error, redacted
from monitor.forms.form import Form
from monitor.widgets.keys import key
from monitor.widgets.turn_text import progress_line

JOBS = 4
_MOST_PROBLEMS = 6
_POLL_S = 0.2

ShowProgress = Callable[[Sequence[LiveTurn], str], None]


@contextmanager
def watched_turns(
    home: Path, ids: Sequence[int], show: ShowProgress, tried: Sequence[RetriedTurn] = ()
) -> Iterator[None]:
    """Shows the phases of the turns as they run, where the journals can be read. `tried`, which
    grows, are those that ended."""
    over = threading.Event()

    def watch() -> None:
        try:
            reader = find_turn_reader()
        except NoResumerError:
            return
        last_look = False
        while not last_look:
            last_look = over.wait(_POLL_S)
            over_with = {one.turn_id for one in tried}
            left = [turn for turn in ids if turn not in over_with]
            # Turns begin in the order in which they wait.
            try:
                found = [reader.turn(home, turn) for turn in left[:JOBS]]
            except Exception as error:  # noqa: BLE001 - a foreign reader
                show((), f"the phases are not known: {foreign_error(error)}")
                return
            counts = progress(list(tried), len(ids)) if len(ids) > 1 else ""
            show([redacted(turn) for turn in found if turn], counts)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class TurnForm(Form):
    """Shows the phases of its turns as they run."""

    AUTO_FOCUS = "#note"
    HINT: ClassVar[str] = ""

    @dataclass
    class Progress(Message):
        """`counts` is how far many turns are; `running` those that run, where that is known."""

        running: Sequence[LiveTurn]
        counts: str = ""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, TurnForm.Progress)

    def fields(self) -> ComposeResult:
        yield Static(self.HINT, id="retry-progress", classes="hint", markup=False)

    def show_progress(self, running: Sequence[LiveTurn], counts: str) -> None:
        """From whatever thread."""
        self.post_message(self.Progress(running, counts))

    @on(Progress)
    def _progressed(self, message: Progress) -> None:
        lines = [Content(message.counts)] if message.counts else []
        lines += map(progress_line, message.running)
        if lines:
            self.query_one("#retry-progress", Static).update(Content("\n").join(lines))


class ResumeForm(TurnForm):
    """An interrupted turn, which no entry is about, goes on."""

    VERB = "Resume"
    DONE = "resumed"
    CHANGES = False
    AUTO_FOCUS = "#confirm"
    HINT = "it goes on from the phase in which it was interrupted"

    def heading(self) -> Content:
        return Content(f"Resume turn {self.entries[0]['turn_id']}")

    def target_lines(self, entries: Sequence[Entry]) -> list[Content]:
        turn = entries[0]
        return [
            Content(one_line(turn["error_message"])[:200]),
            Content(one_line(f"session {turn['session_id']}")),
        ]

    def change(self) -> Change:
        def resume(turn: Entry) -> Entry:
            home, turn_id = self.queue.home, turn["turn_id"]
            request = RetryRequest(
                turn_id, None, note="", via=VIA, ask=partial(ask_about_call, self.app)
            )
            resumer = find_resumer()
            try:
                with watched_turns(home, [turn_id], self.show_progress):
                    result = retry(home, request, resumer)
            finally:
                done_with(resumer)
            if result.failed:
                raise InputError(f"failed in {result.phase or 'a phase'}: {result.message}")
            self.remarks += result_lines(turn, result)
            return turn

        return resume


def progress(tried: Sequence[RetriedTurn], total: int) -> str:
    """`3 of 12 turns: passed 2, failed 0, skipped 1`"""
    if not tried:
        return f"0 of {total} turns; one is tried first"
    return f"{len(tried)} of {total} turns: {tally(tried)}"


def summary(tried: Sequence[RetriedTurn]) -> list[str]:
    """The counts, then what did not pass: failures first, skipped for one reason together."""
    failed = [f"turn {o.turn_id} failed: {o.what[:300]}" for o in tried if o.status == "failed"]
    reasons = Counter(one.what[:300] for one in tried if one.status == "skipped")
    lines = [*failed, *(f"{count} skipped: {reason}" for reason, count in reasons.items())]
    more = [f"and {len(lines) - _MOST_PROBLEMS} more"] if len(lines) > _MOST_PROBLEMS else []
    return [tally(tried), *lines[:_MOST_PROBLEMS], *more]


CHOICES = {"leave": "Leave the turn", "again": "Run it again", "done": "Count it as done"}


class BegunCallForm(ModalScreen[CallDecision]):
    """Run the call again, count it as done, or leave the turn. The focus is on leaving it, which
    changes nothing."""

    AUTO_FOCUS = "#leave"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,l", "answer('leave')", "Leave", "As it is", id="settle.leave"),
        key("a", "answer('again')", "Run again", "Let it run", id="settle.again"),
        key("d", "answer('done')", "It is done", "Count it", id="settle.done"),
    ]

    def __init__(self, call: BegunCall) -> None:
        super().__init__()
        self._call = call

    def compose(self) -> ComposeResult:
        call = self._call
        with Vertical(id="form", classes="box") as box:
            box.border_title = f"Turn {call.turn_id}"
            yield Static(str(call), markup=False)
            with Horizontal(id="form-buttons"):
                for decision, label in CHOICES.items():
                    if decision != "done" or call.unfinished:
                        action = f"screen.answer('{decision}')"
                        yield Button(label, id=decision, action=action, compact=True)
        yield Footer(show_command_palette=False, compact=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "answer" or parameters != ("done",) or self._call.unfinished

    def action_answer(self, answer: CallDecision) -> None:
        self.dismiss(answer)


def ask_about_call(app: App[Any], call: BegunCall) -> CallDecision:
    """From the thread of a retry: waits for the person. When the monitor ends, the turn is left."""
    answer: Future[CallDecision | None] = Future()
    try:
        app.call_from_thread(app.push_screen, BegunCallForm(call), answer.set_result)
    except RuntimeError:
        return "leave"
    while app.is_running:
        try:
            return answer.result(timeout=_POLL_S) or "leave"
        except TimeoutError:
            continue
    return "leave"
