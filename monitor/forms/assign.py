"""Say who looks into it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input

from interventions.closing.transitions import Actor
from interventions.entry import Entry
from monitor.core.changes import VIA, Change
from monitor.forms.form import Form


class AssignForm(Form):
    DEED = "Assign"
    DONE = "assigned"
    AUTO_FOCUS = "#owner"

    def fields(self) -> ComposeResult:
        yield Input(Actor.current().name, placeholder="nobody", id="owner")

    def change(self) -> Change:
        owner = self.query_one("#owner", Input).value.strip() or None

        def one(entry: Entry) -> Entry:
            return self.queue.assign(entry["id"], owner, expected_version=entry["version"], via=VIA)

        return one
