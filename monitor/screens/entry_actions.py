"""What is chosen in the lists and the detail, and the keys that act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual import events, work
from textual.app import SuspendNotSupported
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input

from interventions.entry import Entry, is_open, latest_failure, turn_context
from interventions.errors import NoResumerError, QueueError
from interventions.home import SETTINGS_FILE
from interventions.plaintext import for_home, one_line
from interventions.queue import InterventionQueue
from interventions.retry.contract import LiveTurn, find_resumer, has_resumer
from interventions.times import ago
from interventions.view.description import as_markdown, commands
from monitor.core import app_state, desktop
from monitor.core.app_state import AppState, ChangeOutcome
from monitor.forms.form import Form
from monitor.screens.tab import Item, Tab
from monitor.widgets.detail_view import DetailView
from monitor.widgets.row_list import RowList
from monitor.widgets.search_line import SearchLine
from monitor.widgets.text_view import text_of

# What does the same as a command here, where it is not the form of that name.
_DOES = {"turns": "go('turns')", "similar": "go('alike')", "resume": "form('retry')"}
_MOST_PROBLEMS = 3
_UNDONE_UNASKED = 2
_CHANGES_SHOWN = 3


def _form(name: str) -> type[Form]:
    from monitor.forms import retry, transitions  # late: not needed for the first paint

    forms: dict[str, type[Form]] = {
        "resolve": transitions.ResolveForm,
        "retry": retry.RetryForm,
        "resume": retry.ResumeForm,
        "export": transitions.ExportForm,
        "snooze": transitions.SnoozeForm,
        "dismiss": transitions.DismissForm,
        "assign": transitions.AssignForm,
        "reopen": transitions.ReopenForm,
    }
    return forms[name]


class EntryScreen(Screen[None]):
    """`tab` is the one that is shown, with its rows; `detail` shows one of them."""

    def __init__(self, state: AppState, tab: Tab[Any]) -> None:
        super().__init__()
        self.state = state
        self.tab = tab
        self.rows = RowList(tab.columns, id="list")
        self.detail = DetailView(state.source, id="detail")
        self.search = SearchLine(id="search")
        self.read_only = ""
        self._undoing = asyncio.Lock()

    @property
    def is_reading(self) -> bool:
        """The detail has the keys, and stays on what it shows whatever happens to the list."""
        asker = self.search.asker if self.is_typing else self.focused
        return asker is self.detail

    @property
    def is_typing(self) -> bool:
        return isinstance(self.focused, Input)

    def entries_under_cursor(self) -> Sequence[Entry]:
        return self._item(self.rows.cursor_key).entries

    @property
    def row(self) -> str:
        return (self.detail.key if self.is_reading else "") or self.rows.cursor_key or ""

    @property
    def item(self) -> Item:
        return self._item(self.row)

    def _item(self, key: str | None) -> Item:
        """The item with this key, or one that stands for nothing."""
        return self.tab.shown.get(key or "") or Item("", ())

    def turn_to_resume(self) -> LiveTurn | None:
        turn = self.item.turn
        return turn if turn and turn["status"] == "interrupted" else None

    def current(self) -> Entry | None:
        read = self.detail.entry if self.is_reading else None
        return read or next(iter(self.entries_under_cursor()), None)

    def targets(self) -> Sequence[Entry]:
        """The one that is read, else the marked ones, else those of the row."""
        if self.is_reading and self.detail.entry is not None:
            return [self.detail.entry]
        return self.tab.marked_entries() or self.entries_under_cursor()

    def _target_note(self) -> str:
        if self.is_reading:
            return ""
        shown, marked = self.tab.shown_entries(), self.tab.marked_entries()
        hidden = len(marked) - sum(entry in shown for entry in marked)
        count = 0 if marked else len(self.entries_under_cursor())
        alike = f"the row stands for all {count} of one cause" if count > 1 else ""
        return f"{hidden} of them are marked but not shown by the filter" if hidden else alike

    def apply_changes(self, entries: Sequence[Entry]) -> None:
        """Show entries that were just changed from here, before the file is read again."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        targets = self.targets()
        if action == "form":
            name = str(parameters[0])
            may = bool(self.state.source.queue) if name == "export" else self._may_change()
            resumes = name == "retry" and self.turn_to_resume() is not None
            return (may and (resumes or bool(self._fitting(name)))) or None
        applies = {
            "commands": targets or self.item.turn,
            "undo": self._may_change(),
            "copy": targets or self.item.key,
            "edit": targets,
        }
        return bool(applies.get(action, True)) or None

    def on_key(self, event: events.Key) -> None:
        """A key that is greyed out does not just do nothing."""
        active = self.active_bindings.get(event.key)
        if active is not None and not active.enabled:
            where = "; E goes to its entry" if isinstance(self.item.subject.entry, str) else ""
            self.notify_once(f"{active.binding.description} does not apply here{where}")

    def _may_change(self) -> bool:
        return self.state.source.queue is not None and not self.read_only

    def action_form(self, name: str) -> None:
        queue, fitting = self.state.source.queue, self._fitting(name)
        turn = self.turn_to_resume() if name == "retry" else None
        if queue is None or not (fitting or turn):
            return
        # Does not load the resumer yet: that takes a while, and the form should open at once.
        if name == "retry" and not has_resumer():
            try:
                find_resumer()
            except NoResumerError as error:
                self.notify_once(f"{error}. {error.hint}", "warning")
            return
        if turn:
            name, fitting = "resume", [self.tab.as_entry(turn)]
        form = _form(name)(self.state, queue, fitting, self._target_note())
        form.report_late = self._report
        self.app.push_screen(form, self._report)

    def _fitting(self, form: str) -> list[Entry]:
        if form == "export":
            return list(self.targets())
        for_open = form != "reopen"
        return [entry for entry in self.targets() if is_open(entry) is for_open]

    def _report(self, outcome: ChangeOutcome | None, hint: str = "") -> None:
        if outcome is None or not self.app.is_running:
            return  # cancelled, or the monitor was left while the change was made
        if outcome.done and outcome.can_be_undone:
            self.state.changes.append(outcome)
            self.state.undone_in_a_row = 0
            hint = "  (z takes it back)"
        if outcome.done:
            self.apply_changes(outcome.done)
            lines = [f"{outcome}{hint}", *outcome.remarks]
            self.notify_once("\n".join(lines), "warning" if outcome.remarks else "information")
        if problems := outcome.problems(_MOST_PROBLEMS, self.state.source.home):
            self.notify_once("\n".join(problems), "error")

    @work(group="undo")
    async def action_undo(self) -> None:
        async with self._undoing:  # a key that is pressed meanwhile waits for what this leaves
            await self._undo()

    async def _undo(self) -> None:
        """The last change made from here; without one, that of the entry under the cursor. Whoever
        goes on undoing is asked from the third on."""
        from monitor.forms.transitions import UndoForm  # late, like every form

        queue, entry, changes = self.state.source.queue, self.current(), self.state.changes
        if queue is None:
            return
        if changes and self.state.undone_in_a_row >= _UNDONE_UNASKED:
            form = UndoForm(self.state, queue, changes[-1].done, f"this was: {changes[-1]}")
            outcome = await self.app.push_screen_wait(form)
            if outcome is not None:
                self._show_undone(changes.pop(), outcome)
        elif changes:
            change = changes.pop()
            undone, rest = await asyncio.to_thread(app_state.undo, queue, change)
            if rest is not None:
                changes.append(rest)
            self._show_undone(change, undone)
        elif entry is not None and (lines := await self._past_changes(queue, entry)):
            form = UndoForm(self.state, queue, [entry], "\n".join(lines[-_CHANGES_SHOWN:]))
            self._report(await self.app.push_screen_wait(form))

    async def _past_changes(self, queue: InterventionQueue, entry: Entry) -> list[str]:
        """Changes by anybody, a line each; [] where nothing can be undone, which is said."""
        try:
            await asyncio.to_thread(queue.find, entry["id"])  # a lost queue has a journal, too
            journal = await asyncio.to_thread(queue.journal, entry["id"])
        except QueueError as error:
            self.notify_once(f"{error}. {error.hint}", "error")
            return []
        if not journal:
            self.notify_once("nothing was changed from here, and this entry never was")
        now = self.state.clock()
        return [
            one_line(f"{line.get('action')} by {line.get('by')} {ago(str(line.get('at')), now)}")
            for line in journal
        ]

    def _show_undone(self, change: ChangeOutcome, undone: ChangeOutcome) -> None:
        self.state.undone_in_a_row += 1
        self.state.went_back(change, undone)
        more = len(self.state.changes)
        self._report(undone, hint=f"  (z takes back {more} more)" if more else "")
        for entry in undone.done[:1]:  # what came back is what the next key is meant for
            self.rows.move_to_key(entry["fingerprint"] or entry["id"])

    def action_copy(self, what: str) -> None:
        """The `id`, or everything (`all`), of entries; other rows as they are."""
        targets, row = self.targets(), self.item
        ids = [entry["id"] for entry in targets]
        if not targets:
            self.copy(lambda: text_of(row.text()), "it")
        elif what == "id":
            self.copy(lambda: "\n".join(ids), ids[0] if len(ids) == 1 else f"{len(ids)} ids")
        else:
            which = f"{len(targets)} as Markdown" if len(targets) > 1 else "it as Markdown"
            self.copy(lambda: "\n\n".join(map(self._markdown, targets)), which)

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
        if self.app.is_web:
            self.notify_once(f"sent {what} to the page, which says whether the browser took it")
        elif where:
            self.notify_once(f"copied {what}: it is in {where}")
        else:
            self.notify_once(
                f"sent {what} to the terminal (OSC 52), which does not say whether it took it; "
                "if not: interventions export ID --as markdown"
            )

    def _commands(self) -> list[str]:
        entry, interrupted = next(iter(self.targets()), None), self.turn_to_resume()
        found = commands(entry, has_resumer()) if entry else []
        found += [f"unified-flow resume {interrupted['turn_id']}"] if interrupted else []
        about = entry or self.item.turn
        turn_id = about["turn_id"] if about else 0
        return [*found, f"unified-flow turns show {turn_id}"] if turn_id else found

    @work(group="menu", exclusive=True)
    async def action_commands(self) -> None:
        from monitor.forms.menu import Menu  # late, like every form

        found = self._commands()
        choice = await self.app.push_screen_wait(Menu("Go on with", found, of_commands=True))
        if choice is None:
            return
        word, command = choice[0], found[choice[1]]
        if word == "choose":  # it is copied as it works in any folder
            self.copy(lambda: for_home(command, self.state.source.home), command)
        else:
            name = command.split()[1]
            self.call_later(self.app.run_action, _DOES.get(name, f"form('{name}')"), self)

    def _files(self) -> list[tuple[str, Path, int]]:
        """(what it is, its path, the line) of what may have to be mended."""
        entry = next(iter(self.targets()), None)
        if entry is None:
            return []
        found = []
        # Of a recipe or a configuration that cannot be read the message names the line.
        named = str(latest_failure(entry).get("error_message")).partition(": ")[0]
        if (place := desktop.source_line(named)) and place[0].is_file():
            found.append(("named file", *place))
        if place := desktop.source_line(entry.get("location")):
            found.append(("source", *place))
        recipe = turn_context(entry).get("recipe")
        if isinstance(recipe, str) and recipe and "\0" not in recipe:
            found.append(("recipe", Path(recipe), 1))
        settings = self.state.source.home / SETTINGS_FILE
        if settings.is_file():
            found.append(("configuration", settings, 1))
        return found

    @work(group="menu", exclusive=True)
    async def action_edit(self) -> None:
        from monitor.forms.menu import Menu

        found = self._files()
        if not found:
            self.notify_once("it names no file")
            return
        choice: tuple[str, int] | None = ("choose", 0)
        if len(found) > 1:
            lines = [f"{what:13}  " + one_line(f"{file}:{line}") for what, file, line in found]
            choice = await self.app.push_screen_wait(Menu("Open in $EDITOR", lines))
        if choice is not None:
            self._edit(*found[choice[1]])

    def _edit(self, what: str, file: Path, line: int) -> None:
        if not file.is_file():
            self.notify_once(f"{file} is not on this machine", "warning")
            return
        try:
            with self.app.suspend():
                problem = desktop.edit(file, line)
        except SuspendNotSupported:
            self.notify_once("no editor can be opened from here", "warning")
            return
        self.refresh(layout=True)
        done = f"the {what} was open; t retries with it as it is now"
        self.notify_once(problem or done, "error" if problem else "information")

    def notify_once(self, text: str, severity: SeverityLevel = "information") -> None:
        """Notify in place of the notification before."""
        safe = "\n".join(map(one_line, text.split("\n")))
        self.app.clear_notifications()
        self.app.notify(safe, severity=severity, timeout=4, markup=False)
