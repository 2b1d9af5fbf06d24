"""Resume turns, watch their phases, and resolve what they get past: the chosen ones, or all alike.

All alike is `interventions retry ID --all`: one turn first, and only if that helps, the others.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, get_args

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Static

from interventions.entry import Entry, is_open
from interventions.errors import NoResumerError, QueueError
from interventions.putting.occurrences import stands_at
from interventions.retry.contract import RetryRequest, Scope
from interventions.retry.retry_many import Outcome as Tried
from interventions.retry.retry_many import Waiting, retry_all, waiting
from interventions.retry.retry_one import how_it_went, retry_and_resolve
from interventions.retry.turns import LiveTurn, find_turn_reader
from interventions.secrets.redaction import redact_text
from interventions.view.plaintext import one_line
from monitor import retries
from monitor.core import changes
from monitor.core.changes import VIA, Change, InputError
from monitor.core.feeds import redacted
from monitor.forms.form import Form
from monitor.forms.settle import ask_in
from monitor.keys import key

UNSAID = "the retry went through"
PERMISSION, ESCALATION = "permission", "escalation"
GRANTS: tuple[Scope, ...] = get_args(Scope)
_POLL_S = 0.2
_JOBS = 4


class RetryForm(Form):
    DEED = "Retry"
    DONE = "retried and resolved"
    AUTO_FOCUS = "#note"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("ctrl+t", "all_alike", "All alike", "Retry all alike", id="form.all", show=True),
    ]

    @dataclass
    class Progress(Message):
        """`told` is how far many turns are; `running` those that run, as far as that is known."""

        running: Sequence[LiveTurn]
        told: str = ""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RetryForm.Progress)

    @dataclass
    class Found(Message):
        turns: list[Waiting]

    _alike: Sequence[Waiting] = ()
    _asked = False

    def fields(self) -> ComposeResult:
        at = [stands_at(entry) for entry in self.entries]
        self._asked = any(failure["type"] == ESCALATION for failure in at)
        if self._asked:
            yield Input(placeholder="your answer: the turn goes on with it", id="note")
        else:
            yield Input(UNSAID, placeholder="what you mended", id="note")
        if refused := {str(f.get("tool") or "?") for f in at if f["type"] == PERMISSION}:
            yield Input(placeholder=f"allow it: {', '.join(GRANTS)}", id="grant")
            yield Static(
                f"{one_line(', '.join(sorted(refused)))} was refused; without a word it still is",
                id="grant-hint",
                classes="hint",
                markup=False,
            )
        yield Static(
            "the turn goes on from the phase that failed; it is resolved only if that works",
            id="retry-progress",
            classes="hint",
            markup=False,
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._look_for_alike()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "all_alike":
            return bool(self._alike) or None
        return super().check_action(action, parameters)

    def change(self) -> Change:
        note, grant = self._note(), self._grant()

        def one(entry: Entry) -> Entry:
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=([entry["turn_id"]], over))
            watch.start()
            try:
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
                version = entry["version"]
                retried = retry_and_resolve(self.queue, request, expected_version=version)
            finally:
                over.set()
                watch.join()
            if not retried.result.went_well:
                self.remarks += how_it_went(entry, retried.result)
            return retried.entry

        return one

    def _note(self) -> str:
        note = self.query_one("#note", Input).value.strip()
        if not note:
            asked = "the turn asked a question: what is the answer?"
            raise InputError(asked if self._asked else "a resolution needs a note")
        return note

    def _grant(self) -> Scope | None:
        """What the resumer is to be told; nothing unless somebody typed it."""
        for field in self.query("#grant").results(Input):
            word = field.value.strip().lower()
            meant = [grant for grant in GRANTS if word and grant.startswith(word)]
            if word and not meant:
                raise InputError(f"{word!r} allows nothing: {', '.join(GRANTS)}, or leave it empty")
            return meant[0] if meant else None
        return None

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
        label = f"All {count} alike"
        if not self._working:
            self.query_one("#retry-progress", Static).update(
                f"{count} turns wait for the same fix. All {count} alike: one is tried first, and "
                f"only if it gets past its phase, the other {count - 1}; what passes is resolved"
            )
        await self.query_one("#form-buttons", Horizontal).mount(
            Button(label, id="all-alike", compact=True)
        )
        self.refresh_bindings()

    @on(Button.Pressed, "#all-alike")
    def action_all_alike(self) -> None:
        if self._working or not self._alike:
            return
        try:
            first = self._alike[0]
            request = RetryRequest(
                first.turn_id, first.entry["id"], self._note(), grant=self._grant(), via=VIA
            )
        except InputError as error:
            self.say(str(error))
            return
        self._begin()
        self._retry_all(list(self._alike), request)

    @work(thread=True, group="apply")
    def _retry_all(self, turns: list[Waiting], request: RetryRequest) -> None:
        app, tried = self.app, list[Tried]()
        over = threading.Event()

        def progress(outcome: Tried, done: int, total: int) -> None:
            tried.append(outcome)
            self.post_message(self.Progress((), retries.so_far(tried, total)))

        ids = [turn.turn_id for turn in turns]
        watch = threading.Thread(target=self._watch, args=(ids, over, tried))
        watch.start()
        problem = ""
        try:
            retry_all(
                turns,
                self.queue.home,
                request,
                jobs=_JOBS,
                progress=progress,
                stop=lambda: self._stopping,
            )
        except QueueError as error:
            problem = f"{error} ({error.hint})"
        finally:
            over.set()
            watch.join()
        app.call_from_thread(self._all_came, tried, self._resolved(turns), problem)

    def _resolved(self, turns: Sequence[Waiting]) -> tuple[Entry, ...]:
        entries = {turn.entry["id"]: turn.entry for turn in turns}
        found = changes.apply("", list(entries.values()), lambda e: self.queue.find(e["id"])).done
        return tuple(entry for entry in found if not is_open(entry))

    def _all_came(self, tried: list[Tried], closed: tuple[Entry, ...], problem: str) -> None:
        told = [*filter(None, [problem]), *retries.summary(tried)]
        self.monitor.working -= 1
        if self._left:
            self.when_left(changes.Outcome(self.DONE, closed, remarks=tuple(told)))
            return
        self._end()
        self._refused = True
        self._done = closed
        everything = len(tried) == len(self._alike)
        if everything and all(one.came == "passed" for one in tried) and closed:
            self.action_cancel()
            return
        self.say("\n".join(told))

    def _watch(
        self, ids: Sequence[int], over: threading.Event, tried: Sequence[Tried] = ()
    ) -> None:
        """The phases as they run, where the journals can be read."""
        try:
            reader = find_turn_reader()
        except NoResumerError:
            return
        while True:
            ended = over.wait(_POLL_S)
            left = [turn for turn in ids if turn not in {one.turn_id for one in tried}]
            # Turns begin in the order in which they wait.
            try:
                found = [reader.turn(self.queue.home, turn) for turn in left[:_JOBS]]
            except Exception as error:  # noqa: BLE001 - a foreign reader; the retry needs it not
                why = one_line(redact_text(f"{type(error).__name__}: {error}"))
                self.post_message(self.Progress((), f"the phases are not known: {why}"))
                return
            told = retries.so_far(list(tried), len(ids)) if len(ids) > 1 else ""
            self.post_message(self.Progress([redacted(turn) for turn in found if turn], told))
            if ended:
                return

    @on(Progress)
    def _progress(self, message: Progress) -> None:
        lines = [Content(message.told)] if message.told else []
        lines += [retries.live(turn) for turn in message.running]
        if lines:
            self.query_one("#retry-progress", Static).update(Content("\n").join(lines))
