"""Resume turns, watch their phases, and resolve what they get past: the chosen ones, or all alike.

All alike is `interventions retry ID --all`: one turn first, and only if that helps, the others.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Static

from interventions.entry import Entry, is_open
from interventions.errors import NoResumerError, QueueError
from interventions.resumers import retry
from interventions.retrying import Outcome as Tried
from interventions.retrying import Waiting, retry_all, waiting
from interventions.turns import LiveTurn, find_turn_reader
from monitor import changes, retries
from monitor.changes import VIA, Change
from monitor.forms.form import Form, InputError
from monitor.keys import key

UNSAID = "the retry went through"
_POLL_S = 0.2
_JOBS = 4


class _StoppedError(Exception):
    """The person wants no further turn to begin."""


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

    @dataclass
    class Over(Message):
        tried: list[Tried]
        closed: tuple[Entry, ...]
        problem: str = ""

    _alike: Sequence[Waiting] = ()
    _stop = False

    def fields(self) -> ComposeResult:
        yield Input(UNSAID, placeholder="what you mended", id="note")
        yield Static(
            "the turn goes on from the phase that failed; it is resolved only if that works",
            id="retry-progress",
            classes="hint",
            markup=False,
        )

    def on_mount(self) -> None:
        self._look_for_alike()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "all_alike":
            return bool(self._alike) or None
        return super().check_action(action, parameters)

    # -- the chosen ones -------------------------------------------------------------------------

    def change(self) -> Change:
        note = self._note()

        def one(entry: Entry) -> Entry:
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=([entry["turn_id"]], over))
            watch.start()
            try:
                # A turn that asked a person goes on with their answer, not with our words.
                said: dict[str, Any] = {} if note == UNSAID else {"answer": note}
                retry(entry, self.queue.home, note=note, via=VIA, **said)
            finally:
                over.set()
                watch.join()
            now = self.queue.find(entry["id"])
            if not is_open(now):  # the resumed turn got past the phase and closed it
                return now
            return self.queue.resolve(entry["id"], note, expected_version=entry["version"], via=VIA)

        return one

    def _note(self) -> str:
        note = self.query_one("#note", Input).value.strip()
        if not note:
            raise InputError("a resolution needs a note")
        return note

    # -- all alike -------------------------------------------------------------------------------

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
            note = self._note()
        except InputError as error:
            self.say(str(error))
            return
        self._working = True
        self._stop = False
        self.say("working ... esc: begin no further turn")
        self._retry_all(list(self._alike), note)

    @work(thread=True, group="apply")
    def _retry_all(self, turns: list[Waiting], note: str) -> None:
        tried: list[Tried] = []
        over = threading.Event()

        def progress(outcome: Tried, done: int, total: int) -> None:
            tried.append(outcome)
            self.post_message(self.Progress((), retries.so_far(tried, total)))
            if self._stop and done < total:
                raise _StoppedError

        ids = [turn.turn_id for turn in turns]
        watch = threading.Thread(target=self._watch, args=(ids, over, tried))
        watch.start()
        problem = ""
        try:
            retry_all(turns, self.queue.home, jobs=_JOBS, progress=progress, note=note, via=VIA)
        except _StoppedError:
            problem = "stopped: the others wait as before"
        except QueueError as error:
            problem = f"{error} ({error.hint})"
        finally:
            over.set()
            watch.join()
        self.post_message(self.Over(tried, self._resolved(turns), problem))

    def _resolved(self, turns: Sequence[Waiting]) -> tuple[Entry, ...]:
        entries = {turn.entry["id"]: turn.entry for turn in turns}
        found = changes.apply("", list(entries.values()), lambda e: self.queue.find(e["id"])).done
        return tuple(entry for entry in found if not is_open(entry))

    @on(Over)
    def _over(self, message: Over) -> None:
        self._working = False
        self._refused = True
        self._done = message.closed
        everything = len(message.tried) == len(self._alike)
        if everything and all(one.came == "passed" for one in message.tried) and message.closed:
            super().action_cancel()
            return
        self.say("\n".join(filter(None, [message.problem, *retries.summary(message.tried)])))

    def action_cancel(self) -> None:
        if self._working:
            self._stop = True
        super().action_cancel()

    # -- as they run -----------------------------------------------------------------------------

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
            found = [reader.turn(self.queue.home, turn) for turn in left[:_JOBS]]
            told = retries.so_far(list(tried), len(ids)) if len(ids) > 1 else ""
            self.post_message(self.Progress([turn for turn in found if turn], told))
            if ended:
                return

    @on(Progress)
    def _progress(self, message: Progress) -> None:
        lines = [Content(message.told)] if message.told else []
        lines += [retries.live(turn) for turn in message.running]
        if lines:
            self.query_one("#retry-progress", Static).update(Content("\n").join(lines))
