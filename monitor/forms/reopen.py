"""Open closed ones again."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from interventions.entry import Entry
from monitor.core.changes import VIA, Change
from monitor.forms.form import Form
from monitor.keys import key


class ReopenForm(Form):
    DEED = "Reopen"
    DONE = "reopened"
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("y", "yes", "Yes, reopen", "Reopen them", id="form.yes", show=True),
    ]

    def change(self) -> Change:
        def one(entry: Entry) -> Entry:
            return self.queue.reopen(entry["id"], expected_version=entry["version"], via=VIA)

        return one
