"""The keys that act on entries, for every screen that shows some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from textual import events, work
from textual.app import SuspendNotSupported
from textual.notifications import SeverityLevel
from textual.screen import Screen

from interventions.entry import Entry, is_open
from interventions.errors import NoResumerError, QueueError
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.retry.entry_points import find_resumer, has_resumer
from interventions.view.description import as_markdown
from monitor.core import app_state, desktop
from monitor.core.app_state import AppState, ChangeOutcome
from monitor.forms.form import Form
from monitor.widgets.part import Part, text_of

_MOST_PROBLEMS = 3


def _form(name: str) -> type[Form]:
    from monitor.forms import transitions  # late: not needed for the first paint
    from monitor.forms.retry import RetryForm

    forms: dict[str, type[Form]] = {
        "resolve": transitions.ResolveForm,
        "retry": RetryForm,
        "snooze": transitions.SnoozeForm,
        "dismiss": transitions.DismissForm,
        "assign": transitions.AssignForm,
        "reopen": transitions.ReopenForm,
    }
    return forms[name]


class EntryScreen(Screen[None]):
    def __init__(self, state: AppState) -> None:
        super().__init__()
        self.state = state
        self.read_only = ""
        self._applicable: object = None

    def targets(self) -> Sequence[Entry]:
        """What a key acts on now: the marked ones, else the one under the cursor."""
        raise NotImplementedError

    def current(self) -> Entry | None:
        """The entry under the cursor."""
        raise NotImplementedError

    def row_text(self) -> Sequence[Part]:
        """Of a row that is no entry, what can be copied."""
        raise NotImplementedError

    def target_note(self) -> str:
        """What a form should say of the targets."""
        return ""

    def apply_changes(self, entries: Sequence[Entry]) -> None:
        """Show entries that were just changed from here, before the file is read again."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        targets = self.targets()
        if action == "form":
            return (self._may_change() and bool(self._fitting(str(parameters[0])))) or None
        if action == "undo":
            return self._may_change() or None
        if action in ("copy_id", "copy_all"):
            return bool(targets or self.row_text()) or None
        if action == "edit":
            return any(entry.get("location") for entry in targets[:1]) or None
        return True

    def on_key(self, event: events.Key) -> None:
        """A key that is greyed out does not just do nothing."""
        active = self.active_bindings.get(event.key)
        if active is not None and not active.enabled:
            self.notify_once(f"{active.binding.description} does not apply here")

    def _may_change(self) -> bool:
        return self.state.source.queue is not None and not self.read_only

    def update_keys(self) -> None:
        """Grey out what does not apply. The footer is only built again when that changed."""
        applicable = {key: active.enabled for key, active in self.active_bindings.items()}
        if applicable != self._applicable:
            self._applicable = applicable
            self.refresh_bindings()

    def action_form(self, name: str) -> None:
        queue, fitting = self.state.source.queue, self._fitting(name)
        if queue is None or not fitting:
            return
        # Does not load the resumer yet: that takes a while, and the form should open at once.
        if name == "retry" and not has_resumer():
            try:
                find_resumer()
            except NoResumerError as error:
                self.notify_once(f"{error}. {error.hint}", "warning")
            return
        form = _form(name)(self.state, queue, fitting, self.target_note())
        form.report_late = self._changed
        self.app.push_screen(form, self._changed)

    def _fitting(self, form: str) -> list[Entry]:
        for_open = form != "reopen"
        return [entry for entry in self.targets() if is_open(entry) is for_open]

    def _changed(self, outcome: ChangeOutcome | None) -> None:
        if outcome is not None:
            if outcome.done:
                self.state.changes.append(outcome)
            self._show_outcome(outcome, hint="  (z takes it back)")

    def _show_outcome(self, outcome: ChangeOutcome, hint: str = "") -> None:
        if not self.app.is_running:
            return  # the monitor was left while the change was made
        if outcome.done:
            self.apply_changes(outcome.done)
            lines = [f"{outcome}{hint}", *outcome.remarks]
            self.notify_once("\n".join(lines), "warning" if outcome.remarks else "information")
        if problems := outcome.problems(_MOST_PROBLEMS, self.state.source.home):
            self.notify_once("\n".join(problems), "error")

    @work(group="undo", exclusive=True)
    async def action_undo(self) -> None:
        """The last change made from here; without one, that of the entry under the cursor."""
        queue, entry = self.state.source.queue, self.current()
        if queue is None:
            return
        if self.state.changes:
            last = self.state.changes.pop()
            undone, rest = await asyncio.to_thread(app_state.undo, queue, last)
            if rest is not None:
                self.state.changes.append(rest)
            self._show_outcome(undone)
        elif entry is not None:
            await self._confirm_undo(queue, entry)

    async def _confirm_undo(self, queue: InterventionQueue, entry: Entry) -> None:
        try:
            journal = await asyncio.to_thread(queue.journal, entry["id"])
        except QueueError as error:
            self.notify_once(f"{error}. {error.hint}", "error")
            return
        if not journal:
            self.notify_once("nothing was changed from here, and this entry never was")
            return
        from monitor.forms.transitions import UndoForm

        self.app.push_screen(UndoForm(self.state, queue, [entry], journal), self._undone)

    def _undone(self, outcome: ChangeOutcome | None) -> None:
        if outcome is not None:
            self._show_outcome(outcome)

    def action_copy_id(self) -> None:
        ids = [entry["id"] for entry in self.targets()]
        if not ids:
            self.action_copy_all()
            return
        self.copy(lambda: "\n".join(ids), ids[0] if len(ids) == 1 else f"{len(ids)} ids")

    def action_copy_all(self) -> None:
        targets = self.targets()
        if not targets:
            row = text_of(self.row_text())
            self.copy(lambda: row, "it")
            return

        def text() -> str:
            return "\n\n".join(map(self._markdown, targets))

        self.copy(text, f"{len(targets)} as Markdown" if len(targets) > 1 else "it as Markdown")

    def _markdown(self, entry: Entry) -> str:
        background = self.state.source.background(entry["id"])
        past, journal = list(background.past), list(background.journal)
        return as_markdown(entry, past, journal, self.state.clock())

    @work(group="copy", exclusive=True)
    async def copy(self, make_text: Callable[[], str], what: str) -> None:
        """Says only what is known: a terminal never answers whether OSC 52 worked."""
        try:
            text = await asyncio.to_thread(make_text)
        except QueueError as error:
            self.notify_once(str(error), "error")
            return
        self.app.copy_to_clipboard(text)
        where = "" if self.app.is_web else await asyncio.to_thread(desktop.copy, text)
        if where:
            self.notify_once(f"copied {what}: it is in {where}")
        else:
            self.notify_once(
                f"sent {what} to the terminal (OSC 52), which does not say whether it took it; "
                "if not: interventions export ID --as markdown"
            )

    def action_edit(self) -> None:
        entry = next(iter(self.targets()), None)
        place = desktop.source_line(entry.get("location")) if entry else None
        if place is None:
            self.notify_once("it has no source line")
            return
        file, line = place
        if not file.is_file():
            self.notify_once(f"{file} is not on this machine", "warning")
            return
        problem = ""
        try:
            with self.app.suspend():
                problem = desktop.edit(file, line)
        except SuspendNotSupported:
            self.notify_once("no editor can be opened from here", "warning")
        if problem:
            self.notify_once(problem, "error")
        self.refresh(layout=True)

    def notify_once(self, text: str, severity: SeverityLevel = "information") -> None:
        """In place of the notification before."""
        safe = "\n".join(map(one_line, text.split("\n")))
        self.app.clear_notifications()
        self.app.notify(safe, severity=severity, timeout=4, markup=False)
