"""Take back the last change of an entry, whoever made it: so it is said first who did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from interventions.entry import Entry, Transition
from interventions.queue import InterventionQueue
from interventions.view.plaintext import one_line
from monitor.core.changes import VIA, Change
from monitor.forms.form import Form
from monitor.keys import key


class UndoForm(Form):
    DEED = "Undo"
    DONE = "undid the last change of"
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("y", "yes", "Yes, undo", "Take it back", id="form.yes", show=True),
    ]

    def __init__(
        self, queue: InterventionQueue, targets: Sequence[Entry], journal: Sequence[Transition]
    ) -> None:
        super().__init__(queue, targets)
        self._journal = journal

    def remarks_before(self) -> list[str]:
        return [
            one_line(f"{line.get('at')}  {line.get('action')} by {line.get('by')}")
            for line in self._journal[-3:]
        ]

    def change(self) -> Change:
        def one(entry: Entry) -> Entry:
            return self.queue.undo(entry["id"], expected_version=entry["version"], via=VIA)[1]

        return one
