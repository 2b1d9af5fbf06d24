"""The forms of one change each: resolve, dismiss, snooze, assign, reopen, undo.

Dismiss, reopen and undo focus Cancel and are confirmed by `y`: never by the key that opened them,
which may be held down.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, TypedDict

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input, Static

from interventions.entry import ESCALATION, Entry, latest_failure
from interventions.plaintext import one_line
from interventions.times import from_text, parse_duration
from interventions.transitions import Actor
from monitor.core.app_state import VIA, Change, InputError
from monitor.forms.form import Form
from monitor.widgets.keys import key

_TIMES = re.compile(r"x\s?(\d{1,6})|(\d{1,6})\s?x")


def _unless_changed(change: Callable[..., Entry], *typed: object) -> Change:
    """Refused when the entry is no longer the version that was on the screen."""
    return lambda entry: change(entry["id"], *typed, expected_version=entry["version"], via=VIA)


class ConfirmForm(Form):
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [key("y", "submit", "Yes", "Do it", id="form.yes")]


class ResolveForm(Form):
    """The note is what the next person reads who meets the failure."""

    VERB = "Resolve"
    DONE = "resolved"
    CLOSES = True
    AUTO_FOCUS = "#note"

    def notes(self) -> list[str]:
        asked = any(latest_failure(entry)["type"] == ESCALATION for entry in self.entries)
        notes = (entry.get("regression_note") for entry in self.entries)
        earlier = {one_line(note) for note in notes if note}
        return [
            *super().notes(),
            *(["a question: its turn does not go on by this; t answers it"] if asked else []),
            *(f"resolved before: {note}" for note in sorted(earlier)),
        ]

    def fields(self) -> ComposeResult:
        yield Input(placeholder="what you mended", id="note")

    def change(self) -> Change:
        note = self.typed("note")
        if not note:
            raise InputError("a resolution needs a note: what did you mend?")
        return _unless_changed(self.queue.resolve, note)


class DismissForm(ConfirmForm):
    VERB = "Dismiss"
    DONE = "dismissed"
    CLOSES = True

    def fields(self) -> ComposeResult:
        yield Input(placeholder="why it needs no fix (may be empty)", id="note")

    def change(self) -> Change:
        return _unless_changed(self.queue.dismiss, self.typed("note"))


class ReopenForm(ConfirmForm):
    VERB = "Reopen"
    DONE = "reopened"

    def change(self) -> Change:
        return _unless_changed(self.queue.reopen)


class UndoForm(ConfirmForm):
    """Takes back the last change of anybody."""

    VERB = "Undo"
    DONE = "undid the last change of"

    def change(self) -> Change:
        return _unless_changed(lambda *of, **version: self.queue.undo(*of, **version)[1])


class AssignForm(Form):
    VERB = "Assign"
    DONE = "assigned"
    AUTO_FOCUS = "#owner"

    def fields(self) -> ComposeResult:
        yield Input(Actor.current().name, placeholder="nobody", id="owner")

    def change(self) -> Change:
        return _unless_changed(self.queue.assign, self.typed("owner") or None)


class SnoozeForm(Form):
    VERB = "Snooze"
    DONE = "snoozed"
    AUTO_FOCUS = "#until"

    def fields(self) -> ComposeResult:
        yield Input("4h", placeholder="4h", id="until")
        yield Static(
            "30m, 4h, 2d  ·  x10: until it came ten more times  ·  2026-01-31T09:00Z",
            classes="hint",
            markup=False,
        )

    def change(self) -> Change:
        return _unless_changed(partial(self.queue.snooze, **parse_snooze(self.typed("until"))))


class SnoozeEnd(TypedDict, total=False):
    """Exactly one of the three, named as in `InterventionQueue.snooze`."""

    duration: timedelta
    until: datetime
    until_n_more: int


def parse_snooze(text: str) -> SnoozeEnd:
    """`4h`, `x10` (ten more times) or a time with its zone. Raises InputError."""
    times = _TIMES.fullmatch(text)
    if times:
        return SnoozeEnd(until_n_more=int(times[1] or times[2]))
    duration = parse_duration(text)
    if duration:
        return SnoozeEnd(duration=duration)
    try:
        return SnoozeEnd(until=from_text(text))
    except ValueError:
        raise InputError(
            f"{text!r} is neither a while (30m, 4h, 2d), nor a number of times (x10), "
            "nor a time with its zone (2026-01-31T09:00Z)"
        ) from None
