"""The forms of one change each: resolve, dismiss, snooze, assign, reopen, undo; and export.

Dismiss, reopen and undo focus Cancel and are confirmed by `y`: never by the key that opened them,
which may be held down.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import BindingType

from interventions.entry import ESCALATION, Entry, latest_failure, short_id
from interventions.export import FORMS, exported, write_private
from interventions.plaintext import one_line
from interventions.times import from_text, parse_duration
from interventions.transitions import Actor
from monitor.core.app_state import VIA, Change, InputError
from monitor.forms.form import Form
from monitor.widgets.keys import key

_TIMES = re.compile(r"x\s?(\d{1,6})|(\d{1,6})\s?x")
_ID = "{id}"


def _unless_changed(change: Callable[..., Entry], *typed: object) -> Change:
    """Refused when the entry is no longer the version that was on the screen."""
    return lambda entry: change(entry["id"], *typed, expected_version=entry["version"], via=VIA)


class ConfirmForm(Form):
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("y,ctrl+s", "submit", "Yes", "Do it", key_display="y", id="form.yes")
    ]


class ResolveForm(Form):
    """The note is what the next person reads who meets the failure."""

    VERB, DONE, CLOSES = "Resolve", "resolved", True
    PLACEHOLDER = "what you mended"

    def notes(self) -> list[str]:
        asked = any(latest_failure(entry)["type"] == ESCALATION for entry in self.entries)
        notes = (entry.get("regression_note") for entry in self.entries)
        earlier = {one_line(note) for note in notes if note}
        return [
            *super().notes(),
            *(["a question: its turn does not go on by this; t answers it"] if asked else []),
            *(f"resolved before: {note}" for note in sorted(earlier)),
        ]

    def change(self) -> Change:
        if not self.typed():
            raise InputError("a resolution needs a note: what did you mend?")
        return _unless_changed(self.queue.resolve, self.typed())


class DismissForm(ConfirmForm):
    VERB, DONE, CLOSES = "Dismiss", "dismissed", True
    PLACEHOLDER = "why it needs no fix (may be empty)"

    def change(self) -> Change:
        return _unless_changed(self.queue.dismiss, self.typed())


class ReopenForm(ConfirmForm):
    VERB, DONE = "Reopen", "reopened"

    def change(self) -> Change:
        return _unless_changed(self.queue.reopen)


class UndoForm(ConfirmForm):
    """Takes back the last change of anybody."""

    VERB, DONE, CAN_BE_UNDONE = "Undo", "undid the last change of", False

    def change(self) -> Change:
        return _unless_changed(lambda *of, **version: self.queue.undo(*of, **version)[1])


class AssignForm(Form):
    VERB, DONE = "Assign", "assigned"
    PLACEHOLDER = "nobody"

    def proposed(self) -> str:
        return Actor.current().name

    def change(self) -> Change:
        return _unless_changed(self.queue.assign, self.typed() or None)


class SnoozeForm(Form):
    VERB, DONE = "Snooze", "snoozed"
    PLACEHOLDER = "4h"
    HINT = "30m, 4h, 2d  ·  x10: until it came ten more times  ·  2026-01-31T09:00Z"

    def proposed(self) -> str:
        return self.PLACEHOLDER

    def change(self) -> Change:
        return _unless_changed(partial(self.queue.snooze, **parse_snooze(self.typed())))


def parse_snooze(text: str) -> dict[str, Any]:
    """`4h`, `x10` (ten more times) or a time with its zone, as `InterventionQueue.snooze` takes it.
    Raises InputError."""
    if times := _TIMES.fullmatch(text):
        return {"until_n_more": int(times[1] or times[2])}
    if duration := parse_duration(text):
        return {"duration": duration}
    try:
        return {"until": from_text(text)}
    except ValueError:
        raise InputError(
            f"{text!r} is neither a while (30m, 4h, 2d), nor a number of times (x10), "
            "nor a time with its zone (2026-01-31T09:00Z)"
        ) from None


class ExportForm(Form):
    """Into files, to hand on."""

    VERB, DONE, CAN_BE_UNDONE = "Export", "exported", False
    PLACEHOLDER = "a file"
    HINT = ".json for monitor --from  ·  .md to read  ·  .py is a test of its turn"

    def proposed(self) -> str:
        own = short_id(self.entries[0]["id"]) if len(self.entries) == 1 else _ID
        return f"intervention-{own}.json"

    def change(self) -> Change:
        path = Path(self.typed()).expanduser()
        form = FORMS.get(path.suffix)
        if form is None:
            raise InputError(f"a name that ends with one of {', '.join(FORMS)} says the form")
        if len(self.entries) > 1 and _ID not in path.name:
            raise InputError(f"{len(self.entries)} files: {_ID} in the name stands for each id")

        def export(entry: Entry) -> Entry:
            own = path.with_name(path.name.replace(_ID, short_id(entry["id"])))
            text = exported(self.queue, entry, form, self.state.clock())
            try:
                write_private(own, text, replace=False)
            except OSError as error:
                raise InputError(f"cannot write {own}: {error.strerror}") from error
            self.remarks.append(f"wrote {own.absolute()}")
            return entry

        return export
