"""An intervention into a file, to hand on."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.widgets import Input, Static

from interventions.entry import Entry, short_id
from interventions.export import FORMS, exported, write_private
from monitor.core.app_state import Change, InputError
from monitor.forms.form import Form

_ID = "{id}"


class ExportForm(Form):
    VERB = "Export"
    DONE = "exported"
    CHANGES = False
    AUTO_FOCUS = "#path"

    def fields(self) -> ComposeResult:
        one = short_id(self.entries[0]["id"]) if len(self.entries) == 1 else _ID
        yield Input(f"intervention-{one}.json", id="path")
        yield Static(
            ".json for monitor --from  ·  .md to read  ·  .py is a test of its turn",
            classes="hint",
            markup=False,
        )

    def change(self) -> Change:
        path = Path(self.typed("path")).expanduser()
        form = FORMS.get(path.suffix)
        if form is None:
            raise InputError(f"a name that ends with one of {', '.join(FORMS)} says the form")
        if len(self.entries) > 1 and _ID not in path.name:
            raise InputError(f"{len(self.entries)} files: {_ID} in the name stands for each id")

        def export(entry: Entry) -> Entry:
            own = path.with_name(path.name.replace(_ID, short_id(entry["id"])))
            text = exported(self.queue, entry, form, self.app_state.clock())
            try:
                write_private(own, text, replace=False)
            except OSError as error:
                raise InputError(f"cannot write {own}: {error.strerror}") from error
            self.remarks.append(f"wrote {own.absolute()}")
            return entry

        return export
