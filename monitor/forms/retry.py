"""Resume the turn, watch its phases, and resolve the entry if it went through."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from interventions.entry import Entry, is_open, short_id
from interventions.plaintext import one_line
from interventions.resumers import retry
from monitor import ribbon
from monitor.changes import VIA, Change
from monitor.forms.form import Form, InputError
from monitor.turns import LiveTurn, NoTurnsError, find_turn_reader

_POLL_S = 0.2


class RetryForm(Form):
    DEED = "Retry"
    DONE = "retried and resolved"
    AUTO_FOCUS = "#note"

    @dataclass
    class Progress(Message):
        entry: Entry
        turn: LiveTurn | None

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RetryForm.Progress)

    def fields(self) -> ComposeResult:
        yield Input("the retry went through", placeholder="what you mended", id="note")
        yield Static(
            "the turn goes on from the phase that failed; it is resolved only if that works",
            id="retry-progress",
            classes="hint",
            markup=False,
        )

    def change(self) -> Change:
        note = self.query_one("#note", Input).value.strip()
        if not note:
            raise InputError("a resolution needs a note")

        def one(entry: Entry) -> Entry:
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=(entry, over), daemon=True)
            watch.start()
            try:
                retry(entry, self.queue.home, note=note, via=VIA)
            finally:
                over.set()
                watch.join()
            now = self.queue.find(entry["id"])
            if not is_open(now):  # the resumed turn got past the phase and closed it
                return now
            return self.queue.resolve(entry["id"], note, expected_version=entry["version"], via=VIA)

        return one

    def _watch(self, entry: Entry, over: threading.Event) -> None:
        """The turn's phases as they run, where its journal can be read."""
        self.post_message(self.Progress(entry, None))
        try:
            reader = find_turn_reader()
        except NoTurnsError:
            return
        while True:
            ended = over.wait(_POLL_S)
            self.post_message(self.Progress(entry, reader.turn(self.queue.home, entry["turn_id"])))
            if ended:
                return

    @on(Progress)
    def _progress(self, message: Progress) -> None:
        turn = message.turn
        parts = [Content(f"turn {message.entry['turn_id']} of {short_id(message.entry['id'])}")]
        if turn is not None:
            parts.append(ribbon.marks(ribbon.phases(turn.get("ribbon"))))
            parts.append(Content(one_line(turn.get("doing") or turn.get("status", ""))))
        self.query_one("#retry-progress", Static).update(Content("  ").join(parts))
