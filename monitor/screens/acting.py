"""The keys that act on entries, for every screen that shows some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from textual import work
from textual.app import SuspendNotSupported
from textual.notifications import SeverityLevel
from textual.screen import Screen

from interventions.entry import Entry, is_open
from interventions.errors import NoResumerError, QueueError
from interventions.queue import InterventionQueue
from interventions.retry.resumers import find_resumer, has_resumer
from interventions.view.export import as_markdown
from interventions.view.plaintext import one_line
from monitor.core import changes, clipboard, editor
from monitor.core.changes import Outcome
from monitor.core.source import Source
from monitor.forms.assign import AssignForm
from monitor.forms.dismiss import DismissForm
from monitor.forms.form import Form
from monitor.forms.reopen import ReopenForm
from monitor.forms.resolve import ResolveForm
from monitor.forms.retry import RetryForm
from monitor.forms.snooze import SnoozeForm
from monitor.forms.undo import UndoForm
from monitor.screens.help import HelpScreen

if TYPE_CHECKING:
    from monitor.app import Monitor

_FOR_OPEN = {"resolve", "snooze", "dismiss_entry", "assign", "retry"}
_FOR_ANY = {"copy_id", "copy_markdown"}


class ActingScreen(Screen[None]):
    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.read_only = ""
        self._applicable: object = None

    @property
    def monitor(self) -> Monitor:
        return cast("Monitor", self.app)

    def targets(self) -> Sequence[Entry]:
        """What a key acts on now: the marked ones, else the one under the cursor."""
        raise NotImplementedError

    def current(self) -> Entry | None:
        """The entry under the cursor."""
        raise NotImplementedError

    def remark(self) -> str:
        """What a form should say of the targets beside which they are."""
        return ""

    def patched(self, entries: Sequence[Entry]) -> None:
        """Entries that were just changed from here, before the file is read again."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _FOR_OPEN:
            return (self._may_change() and any(map(is_open, self.targets()))) or None
        if action == "reopen":
            return (self._may_change() and any(not is_open(e) for e in self.targets())) or None
        if action == "undo":
            return self._may_change() or None
        if action in _FOR_ANY:
            return bool(self.targets()) or None
        if action == "edit":
            return any(entry.get("location") for entry in self.targets()[:1]) or None
        return True

    def _may_change(self) -> bool:
        return self.source.queue is not None and not self.read_only

    def check_keys(self) -> None:
        """Grey out what does not apply. The footer is only built again when that changed."""
        states = {is_open(entry) for entry in self.targets()}
        location = any(entry.get("location") for entry in self.targets()[:1])
        applicable = (states, location, self._may_change())
        if applicable != self._applicable:
            self._applicable = applicable
            self.refresh_bindings()

    def action_resolve(self) -> None:
        self._open(ResolveForm, want_open=True)

    def action_dismiss_entry(self) -> None:
        self._open(DismissForm, want_open=True)

    def action_snooze(self) -> None:
        self._open(SnoozeForm, want_open=True)

    def action_assign(self) -> None:
        self._open(AssignForm, want_open=True)

    def action_reopen(self) -> None:
        self._open(ReopenForm, want_open=False)

    def action_retry(self) -> None:
        """At once, for what is under the cursor now: to load what resumes takes a while."""
        if has_resumer():
            self._open(RetryForm, want_open=True)
            return
        try:
            find_resumer()
        except NoResumerError as error:
            self.tell(f"{error}. {error.hint}", severity="warning")

    def _open(self, form: type[Form], *, want_open: bool) -> None:
        queue = self.source.queue
        fitting = [entry for entry in self.targets() if is_open(entry) is want_open]
        if queue is not None and fitting:
            opened = form(queue, fitting, self.remark())
            opened.when_over, opened.when_left = self._acted, self._ended_alone
            self.app.push_screen(opened, opened.when_over)

    def _ended_alone(self, outcome: Outcome) -> None:
        """What a form was left with has come to its end."""
        self._acted(outcome)
        if outcome.refused or outcome.left:
            self.tell("\n".join(outcome.why_not(3)), severity="error")

    def _acted(self, outcome: Outcome | None) -> None:
        if outcome is None or not outcome.done:
            return
        self.monitor.changes.append(outcome)
        self.patched(outcome.done)
        told = [f"{outcome.told()}  (z takes it back)", *outcome.remarks]
        self.tell("\n".join(told), severity="warning" if outcome.remarks else "information")

    @work(group="undo", exclusive=True)
    async def action_undo(self) -> None:
        """The last change made from here; without one, that of the entry under the cursor."""
        queue = self.source.queue
        if queue is None:
            return
        if self.monitor.changes:
            outcome = self.monitor.changes.pop()
            undone = await asyncio.to_thread(changes.undo, queue, outcome)
            if again := changes.to_try_again(outcome, undone):
                self.monitor.changes.append(again)
            self.patched(undone.done)
            if undone.done:
                self.tell(undone.told())
            if undone.refused:
                self.tell("\n".join(undone.why_not(3)), severity="error")
            return
        entry = self.current()
        if entry is not None:
            await self._ask_to_undo(queue, [entry])

    async def _ask_to_undo(self, queue: InterventionQueue, targets: Sequence[Entry]) -> None:
        try:
            journal = await asyncio.to_thread(queue.journal, targets[0]["id"])
        except QueueError as error:
            self.tell(f"{error}. {error.hint}", severity="error")
            return
        if not journal:
            self.tell("nothing was changed from here, and this entry never was")
            return
        self.app.push_screen(UndoForm(queue, targets, journal), self._undone)

    def _undone(self, outcome: Outcome | None) -> None:
        if outcome is not None and outcome.done:
            self.patched(outcome.done)
            self.tell(outcome.told())

    def action_copy_id(self) -> None:
        targets = self.targets()
        ids = "\n".join(entry["id"] for entry in targets)
        self._copy(lambda: ids, targets[0]["id"] if len(targets) == 1 else f"{len(targets)} ids")

    def action_copy_markdown(self) -> None:
        targets = self.targets()

        def text() -> str:
            return "\n\n".join(self._markdown(entry) for entry in targets)

        self._copy(text, f"{len(targets)} as Markdown" if len(targets) > 1 else "it as Markdown")

    def _markdown(self, entry: Entry) -> str:
        background = self.source.background(entry["id"])
        past, journal = list(background.past), list(background.journal)
        return as_markdown(entry, past, journal, self.monitor.clock())

    @work(group="copy", exclusive=True)
    async def _copy(self, text_of: Callable[[], str], what: str) -> None:
        try:
            text = await asyncio.to_thread(text_of)
        except QueueError as error:
            self.tell(str(error), severity="error")
            return
        self.app.copy_to_clipboard(text)
        where = "" if self.app.is_web else await asyncio.to_thread(clipboard.copy_natively, text)
        if where:
            self.tell(f"copied {what}: it is in {where}")
        else:
            self.tell(
                f"sent {what} to the terminal (OSC 52), which does not say whether it took it; "
                "if not: interventions export ID --markdown"
            )

    def action_edit(self) -> None:
        entry = next(iter(self.targets()), None)
        where = editor.place(entry.get("location")) if entry else None
        if where is None:
            self.tell("it has no source line")
            return
        file, line = where
        if not file.is_file():
            self.tell(f"{file} is not on this machine", severity="warning")
            return
        problem = ""
        try:
            with self.app.suspend():
                problem = editor.edit(file, line)
        except SuspendNotSupported:
            self.tell("no editor can be opened from here", severity="warning")
        if problem:
            self.tell(problem, severity="error")
        self.refresh(layout=True)

    def tell(self, text: str, severity: SeverityLevel = "information") -> None:
        told = "\n".join(map(one_line, text.split("\n")))
        self.app.clear_notifications()
        self.app.notify(told, severity=severity, timeout=4, markup=False)

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(list(self.active_bindings.values())))
