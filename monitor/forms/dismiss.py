"""Close as not worth a fix. The focus is on Cancel, and `d` held down does nothing here."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from interventions.entry import Entry
from monitor.core.changes import VIA, Change
from monitor.forms.form import Form
from monitor.keys import key


class DismissForm(Form):
    DEED = "Dismiss"
    DONE = "dismissed"
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("y", "yes", "Yes, dismiss", "Dismiss them", id="form.yes", show=True),
    ]

    def fields(self) -> ComposeResult:
        yield Input(placeholder="why it needs no fix (may be empty)", id="note")

    def change(self) -> Change:
        note = self.query_one("#note", Input).value.strip()

        def one(entry: Entry) -> Entry:
            return self.queue.dismiss(entry["id"], note, expected_version=entry["version"], via=VIA)

        return one
