"""Close as solved: the note is what the next person reads who meets the failure."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input

from interventions.entry import Entry
from interventions.putting.admission import ESCALATION
from interventions.putting.occurrences import stands_at
from interventions.view.plaintext import one_line
from monitor.core.changes import VIA, Change, InputError
from monitor.forms.form import Form


class ResolveForm(Form):
    DEED = "Resolve"
    DONE = "resolved"
    AUTO_FOCUS = "#note"

    def remarks_before(self) -> list[str]:
        asked = any(stands_at(entry)["type"] == ESCALATION for entry in self.entries)
        notes = (e.get("regression_note") for e in self.entries)
        earlier = {one_line(note) for note in notes if note}
        return [
            *super().remarks_before(),
            *(["a question: its turn does not go on by this; t answers it"] if asked else []),
            *(f"resolved before: {note}" for note in sorted(earlier)),
        ]

    def fields(self) -> ComposeResult:
        yield Input(placeholder="what you mended", id="note")

    def change(self) -> Change:
        note = self.query_one("#note", Input).value.strip()
        if not note:
            raise InputError("a resolution needs a note: what did you mend?")

        def one(entry: Entry) -> Entry:
            return self.queue.resolve(entry["id"], note, expected_version=entry["version"], via=VIA)

        return one
