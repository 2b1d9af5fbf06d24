"""What every form has: whom it acts on, what is refused, and a way out that is never far.

The targets are fixed when the form opens. What happens to them meanwhile is shown, and a change is
refused when somebody else was first (compare and swap on the entry's version).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from interventions.entry import Entry, is_open, short_id, short_ids, state_of, turn_context
from interventions.errors import QueueError
from interventions.plaintext import first_of, one_line
from interventions.queue import InterventionQueue
from interventions.view.description import where
from interventions.view.groups import other_failures, other_line, single
from monitor.core.app_state import AppState, Change, ChangeOutcome, InputError, Refusal, apply
from monitor.widgets.keys import KeyBar, key

Job = Callable[[], ChangeOutcome]
_MOST_SHOWN, _LEAST_SHOWN = 8, 1
_MOST_OTHERS = 3
_POLL_S = 0.2
_ROWS_OF_THE_REST, _ROWS_OF_A_PROBLEM = 15, 6


class Stage(Enum):
    """EDITING, REFUSED ── submit ──> RUNNING ── the end ──> CLOSED, or REFUSED
    RUNNING ── cancel ──> STOPPING ── cancel ──> CLOSED
    EDITING, REFUSED ── cancel ──> CLOSED
    """

    EDITING = auto()  # nothing was tried yet
    RUNNING = auto()  # nothing can be typed
    STOPPING = auto()  # the entry that runs is the last one
    REFUSED = auto()  # some of it was refused: to be read, and tried again
    CLOSED = auto()  # a change that still runs then is reported elsewhere


class Form(ModalScreen[ChangeOutcome | None]):
    """A subclass names the action and the field, and makes the change from what was typed.

    When it closes it gives what was done; `report_late` gets the outcome of a change that still
    ran then."""

    VERB: ClassVar[str]
    DONE: ClassVar[str]
    PLACEHOLDER: ClassVar[str] = ""  # without one there is no field
    HINT: ClassVar[str] = ""
    CLOSES: ClassVar[bool] = False
    CAN_BE_UNDONE: ClassVar[bool] = True
    AUTO_FOCUS = "#typed"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "cancel", "Cancel", "Change nothing", id="form.cancel"),
        key("ctrl+s", "submit", "Do it", "Do it", id="form.submit"),
        key("ctrl+o", "override", "All the same", "Whatever others did", id="form.go-on"),
    ]

    def __init__(
        self, state: AppState, queue: InterventionQueue, targets: Sequence[Entry], note: str = ""
    ) -> None:
        super().__init__()
        self.state = state
        self.queue = queue
        self.entries = list(targets)
        self.target_note = note
        self.stage = Stage.EDITING
        self.remarks: list[str] = []
        self._done: dict[str, Entry] = {}  # by all tries
        self._newer: dict[str, Entry] = {}  # of those refused, as somebody else has changed them
        self.report_late: Callable[[ChangeOutcome], None] = lambda outcome: None
        self._tried = 0
        self._focused: Widget | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="form", classes="box", can_focus=False):
            yield Static(id="form-entries", markup=False)
            yield Static(id="form-remark", markup=False)
            yield from self.fields()
            yield Static(id="form-hint", classes="hint", markup=False)
            yield Static(id="form-problem", markup=False)
            with Horizontal(id="form-buttons"):
                yield Button("Cancel", id="cancel", action="screen.cancel", compact=True)
                yield Button(
                    self.VERB, "primary", id="confirm", action="screen.submit", compact=True
                )
        yield KeyBar()

    def on_mount(self) -> None:
        self._show("#form-hint", self.HINT)
        self._show("#form-problem", "")
        self.show_targets()

    @property
    def can_start(self) -> bool:
        return self.stage in (Stage.EDITING, Stage.REFUSED)

    @property
    def stops(self) -> bool:
        """No further entry is begun."""
        return self.stage in (Stage.STOPPING, Stage.CLOSED)

    def heading(self) -> Content:
        """As `Content`: a string would be read as markup, and its ids come from outside."""
        count = len(self.entries)
        which = "1 intervention" if count == 1 else f"{count} interventions"
        ids = short_ids(entry["id"] for entry in self.entries)
        causes = len({entry["fingerprint"] or entry["id"] for entry in self.entries})
        of = f" of {causes} causes" if causes > 1 else ""
        return Content(f"{self.VERB} {which}{of}: {ids}")

    def notes(self) -> list[str]:
        """What a person should know of the targets before they submit."""
        others = other_failures(self.entries) if self.CLOSES else []
        named = [f"  {line}" for line in first_of(list(map(other_line, others)), _MOST_OTHERS)]
        what = f"{len(others)} other failure{'s' if len(others) > 1 else ''}"
        closes = f"closes {what}, too:" if others else ""
        return [*filter(None, [self.target_note, closes]), *named]

    def target_lines(self, entries: Sequence[Entry]) -> list[Content]:
        """What one cause has in common once; of each where it happened, and else what."""
        failures = [group.error[:200] for group in single(entries)]
        alike = len({(e["fingerprint"], f) for e, f in zip(entries, failures, strict=True)}) == 1
        lines = [Content(failures[0])] if alike else []
        for entry, failure in zip(entries, failures, strict=True):
            question = one_line(str(turn_context(entry).get("question") or ""))[:200]
            what = question if alike else f"{entry['phase']}  {failure}"
            own = (short_id(entry["id"]), "bold")
            lines.append(Content.assemble(own, f"  {one_line(where(entry))}  ", (what, "dim")))
        return lines

    def fields(self) -> ComposeResult:
        if self.PLACEHOLDER:
            yield Input(self.proposed(), placeholder=self.PLACEHOLDER, id="typed")

    def proposed(self) -> str:
        """What stands in the field at first."""
        return ""

    def change(self) -> Change:
        """The change that was typed. Raises InputError."""
        raise NotImplementedError

    def job(self) -> Job:
        """What to do, from what was typed. Raises InputError."""
        return partial(self._change_each, self.change())

    def progress(self) -> Content | str:
        """How far it is; asked for by a worker's thread, again and again while it works."""
        total = len(self.entries)
        return f"{self._tried} of {total}" if total > 1 else ""

    def typed(self) -> str:
        return self.query_one("#typed", Input).value.strip()

    def on_resize(self) -> None:
        self.show_targets()

    def show_targets(self) -> None:
        """A line each, as many as there is room for, and the notes."""
        self.query_one("#form", VerticalScroll).border_title = self.heading()
        rest = _ROWS_OF_THE_REST + _ROWS_OF_A_PROBLEM * self.query_one("#form-problem").display
        most = max(_LEAST_SHOWN, min(_MOST_SHOWN, self.app.size.height - rest))
        lines = self.target_lines(self.entries[:most])
        if len(self.entries) > most:
            lines.append(Content.styled(f"and {len(self.entries) - most} more", "dim"))
        self.query_one("#form-entries").set_class(len(self.entries) > 1, "-many")
        self._show("#form-entries", Content("\n").join(lines))
        self._show("#form-remark", "\n".join(self.notes()))

    def _show(self, where: str, text: Content | str) -> None:
        """Show the text; an empty one takes no line."""
        found = self.query_one(where, Static)
        found.update(text)
        found.display = bool(text)

    def show_problem(self, text: str) -> None:
        """What went wrong, or that it works: in sight, whatever else is not."""
        self._show("#form-problem", text)
        self.show_targets()
        self.call_after_refresh(self.query_one("#form", VerticalScroll).scroll_end, animate=False)

    def show_changes(self, entries: Sequence[Entry]) -> None:
        """The queue changed while the form is open; a refusal, once there, says more."""
        if self.stage is not Stage.EDITING:
            return
        moment = self.state.clock()
        now = {entry["id"]: entry for entry in entries}
        changed = [
            f"{short_id(own['id'])} is {state_of(current, moment)} now"
            for own in self.entries
            if (current := now.get(own["id"])) is not None and current["version"] != own["version"]
        ]
        if changed:
            self.show_problem("changed by somebody else meanwhile: " + ", ".join(changed))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "override" or bool(self._newer)

    @on(Input.Submitted)
    def action_submit(self) -> None:
        if not self.can_start:
            return
        try:
            job = self.job()
        except InputError as error:
            self.show_problem(str(error))
            return
        # What is typed from here on would not count, so nothing can be.
        self.stage, self._newer = Stage.RUNNING, {}
        self._focused = self.focused
        self.query(Input).set(disabled=True)
        self.show_problem("working ...")
        self.app.run_worker(self._run(job), group="apply")  # which goes on if the form is left

    def action_override(self) -> None:
        """Submit with what somebody else has made of the entries, which the form has shown."""
        self.entries = [self._newer.get(entry["id"], entry) for entry in self.entries]
        self.action_submit()

    def action_cancel(self) -> None:
        """While it works: begin no further one; once more: leave it to end by itself."""
        if self.stage is Stage.RUNNING:
            self.stage = Stage.STOPPING
            self.show_problem("no further one is begun; esc again leaves this to end by itself")
        elif self.stage is not Stage.CLOSED:
            self._close()

    def _close(self) -> None:
        self.stage, done = Stage.CLOSED, ChangeOutcome(self.DONE, tuple(self._done.values()))
        self.dismiss(self._reported(done) if done.done else None)

    def _reported(self, outcome: ChangeOutcome) -> ChangeOutcome:
        return replace(outcome, remarks=tuple(self.remarks), can_be_undone=self.CAN_BE_UNDONE)

    def _change_each(self, change: Change) -> ChangeOutcome:
        def may_continue(tried: int) -> bool:
            self._tried = tried
            return not self.stops

        outcome = apply(self.DONE, self.entries, change, may_continue=may_continue)
        return replace(outcome, refused=tuple(map(self._explained, outcome.refused)))

    def _explained(self, refusal: Refusal) -> Refusal:
        """The refusal with the current state of an entry that somebody else has changed."""
        own = now = refusal.entry
        with suppress(QueueError):
            now = self.queue.find(own["id"])
        if now["version"] == own["version"]:
            return refusal
        note = f": {now['resolution']}" if now.get("resolution") else ""
        why = f"{refusal.why}; it is {state_of(now, self.state.clock())} now{note}"
        return replace(refusal, why=one_line(why), now=now if is_open(now) else None)

    async def _run(self, job: Job) -> None:
        running = asyncio.create_task(asyncio.to_thread(job))
        while not running.done():
            await asyncio.wait([running], timeout=_POLL_S)
            progress = await asyncio.to_thread(self.progress)
            if not self.app.is_running:  # it ends: nothing is left to show it in
                return
            if progress and self.stage is not Stage.CLOSED:
                self._show("#form-hint", progress)
        self._applied(running.result())

    def _applied(self, outcome: ChangeOutcome) -> None:
        """The change is over. The form stays if something is to be read in it; it is about the rest
        then."""
        if self.stage is Stage.CLOSED:
            self.report_late(self._reported(outcome))
            return
        self._done |= {entry["id"]: entry for entry in outcome.done}
        self._newer = {one.entry["id"]: one.now for one in outcome.refused if one.now is not None}
        self.entries = [*(refusal.entry for refusal in outcome.refused), *outcome.not_tried]
        if not self.entries:
            self._close()
            return
        self.stage = Stage.REFUSED
        self.query(Input).set(disabled=False)
        self.set_focus(self._focused)
        lines = [f"{self.DONE} {len(self._done)}"] if self._done else []
        lines += [*self.remarks, *outcome.problems(_MOST_SHOWN, self.queue.home)]
        if self._newer:
            lines.append("ctrl+o goes on all the same")
        self.show_problem("\n".join(lines))
        self.refresh_bindings()
