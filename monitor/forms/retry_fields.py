"""What a retry of some turns asks and shows, whether of the chosen ones or of all alike."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from interventions.errors import NoResumerError
from interventions.putting.occurrences import stands_at
from interventions.retry.contract import Scope
from interventions.retry.retry_many import Outcome as Tried
from interventions.retry.turns import LiveTurn, find_turn_reader
from interventions.secrets.redaction import redact_text
from interventions.view.plaintext import one_line
from monitor import retries
from monitor.core.changes import InputError
from monitor.core.feeds import redacted
from monitor.forms.form import Form

UNSAID = "the retry went through"
PERMISSION, ESCALATION = "permission", "escalation"
GRANTS: tuple[Scope, ...] = get_args(Scope)
JOBS = 4
_POLL_S = 0.2


class RetryFields(Form):
    DEED = "Retry"
    DONE = "retried and resolved"
    AUTO_FOCUS = "#note"

    @dataclass
    class Progress(Message):
        """`told` is how far many turns are; `running` those that run, as far as that is known."""

        running: Sequence[LiveTurn]
        told: str = ""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RetryFields.Progress)

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

    def note(self) -> str:
        """Raises InputError."""
        note = self.query_one("#note", Input).value.strip()
        if not note:
            asked = "the turn asked a question: what is the answer?"
            raise InputError(asked if self._asked else "a resolution needs a note")
        return note

    def grant(self) -> Scope | None:
        """What the resumer is to be told; nothing unless somebody typed it. Raises InputError."""
        for field in self.query("#grant").results(Input):
            word = field.value.strip().lower()
            meant = [grant for grant in GRANTS if word and grant.startswith(word)]
            if word and not meant:
                raise InputError(f"{word!r} allows nothing: {', '.join(GRANTS)}, or leave it empty")
            return meant[0] if meant else None
        return None

    def tell_progress(self, running: Sequence[LiveTurn], told: str) -> None:
        """From whatever thread."""
        self.post_message(self.Progress(running, told))

    @on(Progress)
    def _progress(self, message: Progress) -> None:
        lines = [Content(message.told)] if message.told else []
        lines += [retries.live(turn) for turn in message.running]
        if lines:
            self.query_one("#retry-progress", Static).update(Content("\n").join(lines))


Tell = Callable[[Sequence[LiveTurn], str], None]


@contextmanager
def watched(
    home: Path, ids: Sequence[int], tell: Tell, tried: Sequence[Tried] = ()
) -> Iterator[None]:
    """Tells the phases of the turns as they run. `tried`, which grows, are those that ended."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(home, ids, tell, tried, over))
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def _watch(
    home: Path, ids: Sequence[int], tell: Tell, tried: Sequence[Tried], over: threading.Event
) -> None:
    """Where the journals can be read."""
    try:
        reader = find_turn_reader()
    except NoResumerError:
        return
    while True:
        ended = over.wait(_POLL_S)
        left = [turn for turn in ids if turn not in {one.turn_id for one in tried}]
        # Turns begin in the order in which they wait.
        try:
            found = [reader.turn(home, turn) for turn in left[:JOBS]]
        except Exception as error:  # noqa: BLE001 - a foreign reader; the retry needs it not
            why = one_line(redact_text(f"{type(error).__name__}: {error}"))
            tell((), f"the phases are not known: {why}")
            return
        told = retries.so_far(list(tried), len(ids)) if len(ids) > 1 else ""
        tell([redacted(turn) for turn in found if turn], told)
        if ended:
            return
