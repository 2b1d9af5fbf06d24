"""What every form has: whom it acts on, what is refused, and a way out that is never far.

The targets are fixed when the form opens. What happens to them meanwhile is shown, and a change is
refused when somebody else was first (compare and swap on the entry's version).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Footer, Input, Static

from interventions.entry import Entry, latest_failure, short_id, short_ids, state_of, turn_context
from interventions.plaintext import one_line
from interventions.queue import InterventionQueue
from interventions.view.groups import other_failures, other_line
from monitor.core.app_state import (
    AppState,
    Change,
    ChangeOutcome,
    InputError,
    apply,
    explain_conflicts,
)
from monitor.widgets.keys import key

Job = Callable[[], ChangeOutcome]
_MOST_SHOWN, _LEAST_SHOWN = 8, 1
_MOST_OTHERS = 3
_ROWS_OF_THE_REST, _ROWS_OF_A_PROBLEM = 15, 6


class Stage(Enum):
    EDITING = auto()  # nothing was tried yet
    RUNNING = auto()  # nothing can be typed
    STOPPING = auto()  # the entry that runs is the last one
    REFUSED = auto()  # some of it was refused: to be read, and tried again
    CLOSED = auto()  # a change that still runs then is reported elsewhere


@dataclass(frozen=True)
class FormState:
    """EDITING ── start ──> RUNNING ── finish ──> CLOSED, or REFUSED if something is to be read
    REFUSED ── start ──> RUNNING ── cancel ──> STOPPING ── cancel ──> CLOSED
    EDITING, REFUSED ── cancel ──> CLOSED

    `done` are the entries of all tries; `newer`, when refused, are entries by id as somebody else
    has changed them, with which one can continue all the same."""

    stage: Stage = Stage.EDITING
    done: tuple[Entry, ...] = ()
    newer: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def can_start(self) -> bool:
        return self.stage in (Stage.EDITING, Stage.REFUSED)

    @property
    def is_closed(self) -> bool:
        return self.stage is Stage.CLOSED

    @property
    def stops(self) -> bool:
        """No further entry is begun."""
        return self.stage in (Stage.STOPPING, Stage.CLOSED)

    def start(self) -> FormState:
        return FormState(Stage.RUNNING, self.done)

    def cancel(self) -> FormState:
        running = self.stage is Stage.RUNNING
        return FormState(Stage.STOPPING if running else Stage.CLOSED, self.done)

    def finish(
        self, done: Sequence[Entry], *, all_well: bool, newer: Mapping[str, Entry]
    ) -> FormState:
        if self.is_closed:
            return self
        latest = {entry["id"]: entry for entry in (*self.done, *done)}
        together = tuple(latest.values())
        if all_well:
            return FormState(Stage.CLOSED, together)
        return FormState(Stage.REFUSED, together, newer)


class Form(ModalScreen[ChangeOutcome | None]):
    """A subclass names the action, adds its fields, and makes the change from what was typed.

    When it closes it gives what was done; `report_late` gets the outcome of a change that still
    ran then."""

    VERB: ClassVar[str]
    DONE: ClassVar[str]
    CLOSES: ClassVar[bool] = False
    CHANGES: ClassVar[bool] = True  # and so can be undone
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "cancel", "Cancel", "Change nothing", id="form.cancel"),
        key("ctrl+s", "submit", "Do it", "Do it", id="form.submit"),
        key(
            "ctrl+o",
            "override",
            "All the same",
            "Go on with the entry as somebody else has changed it",
            id="form.go-on",
        ),
    ]

    def __init__(
        self,
        app_state: AppState,
        queue: InterventionQueue,
        targets: Sequence[Entry],
        note: str = "",
    ) -> None:
        super().__init__()
        self.app_state = app_state
        self.queue = queue
        self.entries = list(targets)
        self.target_note = note
        self.state = FormState()
        self.remarks: list[str] = []
        self.report_late: Callable[[ChangeOutcome], None] = lambda outcome: None
        self._focused: Widget | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="form", classes="box", can_focus=False):
            yield Static(id="form-entries", markup=False)
            yield Static(id="form-remark", markup=False)
            yield from self.fields()
            problem = Static(id="form-problem", markup=False)
            problem.display = False
            yield problem
            with Horizontal(id="form-buttons"):
                yield Button("Cancel", id="cancel", action="screen.cancel", compact=True)
                yield Button(
                    self.VERB, "primary", id="confirm", action="screen.submit", compact=True
                )
        yield Footer(show_command_palette=False, compact=True)

    def heading(self) -> Content:
        """Not a string, which would be markup: the ids in it come from outside."""
        count = len(self.entries)
        which = "1 intervention" if count == 1 else f"{count} interventions"
        ids = short_ids(entry["id"] for entry in self.entries)
        causes = len({entry["fingerprint"] or entry["id"] for entry in self.entries})
        of = f" of {causes} causes" if causes > 1 else ""
        return Content(f"{self.VERB} {which}{of}: {ids}")

    def notes(self) -> list[str]:
        """What a person should know of the targets before they submit."""
        others = other_failures(self.entries) if self.CLOSES else []
        named = [f"  {other_line(row)}" for row in others[:_MOST_OTHERS]]
        if named:
            more = len(others) - len(named)
            named[-1] += f"  and {more} more" if more else ""
            what = f"{len(others)} other failure{'s' if len(others) > 1 else ''}"
            named.insert(0, f"closes {what}, too:")
        return [*filter(None, [self.target_note]), *named]

    def target_lines(self, entries: Sequence[Entry]) -> list[Content]:
        return _target_lines(entries)

    def fields(self) -> ComposeResult:
        yield from ()

    def change(self) -> Change:
        """From what was typed. Raises InputError."""
        raise NotImplementedError

    def typed(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()

    def on_mount(self) -> None:
        self.show_targets()

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
        targets = self.query_one("#form-entries", Static)
        targets.set_class(len(self.entries) > 1, "-many")
        targets.update(Content("\n").join(lines))
        notes = self.notes()
        remark = self.query_one("#form-remark", Static)
        remark.update("\n".join(notes))
        remark.display = bool(notes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "override" or bool(self.state.newer)

    def action_submit(self) -> None:
        if not self.state.can_start:
            return
        try:
            job = self.job()
        except InputError as error:
            self.show_problem(str(error))
            return
        # What is typed from here on would not count, so nothing can be.
        self.state = self.state.start()
        self.app_state.running += 1
        self._focused = self.focused
        for typed in self.query(Input):
            typed.disabled = True
        self.show_problem("working ...")
        self._run(job)

    def action_override(self) -> None:
        """With what somebody else has made of them, which the form has shown."""
        newer = self.state.newer
        self.entries = [newer.get(entry["id"], entry) for entry in self.entries]
        self.action_submit()

    def job(self) -> Job:
        """What to do, from what was typed. Raises InputError."""
        return partial(self._change_each, self.change())

    @work(thread=True, group="apply")
    def _run(self, job: Job) -> None:
        app = self.app
        app.call_from_thread(self._applied, job())

    def _change_each(self, change: Change) -> ChangeOutcome:
        app, total = self.app, len(self.entries)

        def may_continue(tried: int) -> bool:
            if total > 1 and not self.state.stops:
                app.call_from_thread(self.show_problem, f"working ... {tried}/{total}")
            return not self.state.stops

        outcome = apply(self.DONE, self.entries, change, may_continue=may_continue)
        return explain_conflicts(self.queue, outcome, self.app_state.clock())

    def _applied(self, outcome: ChangeOutcome) -> None:
        """The change is over. The form stays if something is to be read in it; it is about the rest
        then."""
        outcome = replace(outcome, remarks=tuple(self.remarks))
        newer = {one.entry["id"]: one.now for one in outcome.refused if one.now is not None}
        self.app_state.running -= 1
        if self.state.is_closed:
            self.report_late(outcome)
            return
        all_well = not outcome.refused and not outcome.not_tried
        self.state = self.state.finish(outcome.done, all_well=all_well, newer=newer)
        for typed in self.query(Input):
            typed.disabled = False
        self.set_focus(self._focused)
        if self.state.is_closed:
            self.dismiss(self._done_so_far())
            return
        self.entries = [*(refusal.entry for refusal in outcome.refused), *outcome.not_tried]
        done = len(self.state.done)
        lines = [f"{self.DONE} {done}"] if done else []
        lines += [*self.remarks, *outcome.problems(_MOST_SHOWN, self.queue.home)]
        if newer:
            lines.append("ctrl+o goes on all the same")
        self.show_targets()
        self.refresh_bindings()
        self.show_problem("\n".join(lines))

    def show_changes(self, entries: Sequence[Entry]) -> None:
        """The queue changed while the form is open; a refusal, once there, says more."""
        if self.state.stage is not Stage.EDITING:
            return
        moment = self.app_state.clock()
        now = {entry["id"]: entry for entry in entries}
        changed = [
            f"{short_id(own['id'])} is {state_of(current, moment)} now"
            for own in self.entries
            if (current := now.get(own["id"])) is not None and current["version"] != own["version"]
        ]
        if changed:
            self.show_problem("changed by somebody else meanwhile: " + ", ".join(changed))

    def show_problem(self, text: str) -> None:
        """What went wrong, or how far it is: in sight, whatever else is not."""
        problem = self.query_one("#form-problem", Static)
        if bool(text) != problem.display:
            problem.display = bool(text)
            self.show_targets()
        problem.update(text)
        self.call_after_refresh(self.query_one("#form", VerticalScroll).scroll_end, animate=False)

    def action_cancel(self) -> None:
        """While it works: begin no further one; once more: leave it to end by itself."""
        if self.state.is_closed:
            return
        self.state = self.state.cancel()
        if self.state.is_closed:
            self.dismiss(self._done_so_far() if self.state.done else None)
        else:
            self.show_problem("no further one is begun; esc again leaves this to end by itself")

    def _done_so_far(self) -> ChangeOutcome:
        return ChangeOutcome(self.DONE, self.state.done, remarks=tuple(self.remarks))

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.action_submit()


def _target_lines(entries: Sequence[Entry]) -> list[Content]:
    """What one cause has in common once; of each where it happened, and else what."""
    alike = len({(entry["fingerprint"], _failure(entry)) for entry in entries}) == 1
    lines = [Content(_failure(entries[0]))] if alike else []
    for entry in entries:
        where = one_line(f"session {entry['session_id']}, turn {entry['turn_id']}")
        question = one_line(str(turn_context(entry).get("question") or ""))[:200]
        what = question if alike else f"{entry['phase']}  {_failure(entry)}"
        line = Content.assemble((short_id(entry["id"]), "bold"), f"  {where}  ", (what, "dim"))
        lines.append(line)
    return lines


def _failure(entry: Entry) -> str:
    now = latest_failure(entry)
    return one_line(f"{now.get('error_type')}: {now.get('error_message')}")[:200]
