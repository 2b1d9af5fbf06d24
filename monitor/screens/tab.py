"""What every tab is, without its widget: rows, the entries behind them, and marks.

Nothing is done to rows that are no entries, so they cannot be marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from textual.content import Content

from interventions.entry import Entry, turns_of
from interventions.retry.contract import LiveTurn
from interventions.view.groups import SEVERITY_WORDS
from monitor.core.feeds import Feed
from monitor.core.links import Subject
from monitor.core.model import TriageModel
from monitor.core.rows import Cell, Column, Row
from monitor.core.snapshot import Snapshot, Trouble, TroubleKind
from monitor.widgets.part import Part


class Tab:
    name: ClassVar[str]
    title: ClassVar[str]
    columns: tuple[Column, ...]
    nothing_yet: ClassVar[tuple[str, str, str]] = ("", "", "")
    of_entries: ClassVar[bool] = False
    follow: ClassVar[bool] = False

    def __init__(self, model: TriageModel) -> None:
        self.model = model
        self.feed: Feed | None = None
        self.marked: set[str] = set()

    def rows(self, now: datetime) -> list[Row]:
        raise NotImplementedError

    def unfiltered(self) -> Sequence[object]:
        raise NotImplementedError

    def why_empty(self) -> Content:
        if self.feed is None:
            return message("Reading", "", "")
        if self.feed.problem:
            return Content(self.feed.problem)
        if self.unfiltered():
            return message("Nothing matches", self.model.view.query.text, "esc clears the filter")
        trouble = self.model.snapshot.trouble
        if trouble is not None:
            return trouble_message(trouble)
        return message(*self.nothing_yet)

    def entries(self, key: str) -> Sequence[Entry]:
        """Those that the row is about."""
        return ()

    def causes(self, key: str = "") -> set[str]:
        """What can be folded at the row, without a key anywhere."""
        return set()

    def row_text(self, key: str) -> Sequence[Part]:
        """The detail of a row that is no entry."""
        return ()

    def turn(self, key: str) -> LiveTurn | None:
        """The turn that the row is."""
        return None

    def subject(self, key: str) -> Subject:
        """What the row leads on from."""
        entry = next(iter(self.entries(key)), None) or self.model.find(key)
        return Subject(turns_of(entry), None, entry["fingerprint"]) if entry else Subject()

    def truncated_note(self) -> str:
        """Where there is more than the rows show."""
        return ""

    def count_label(self) -> str:
        """How much is in it, and how much of that is marked."""
        return ""

    def shown_entries(self, now: datetime) -> Iterable[Entry]:
        return ()

    def all_entries(self) -> Sequence[Entry]:
        """The same without a filter."""
        return ()

    def marked_entries(self) -> list[Entry]:
        return [entry for entry in self.all_entries() if entry["id"] in self.marked]

    def count_hidden_marks(self, now: datetime) -> int:
        """How many marked entries the filter hides."""
        shown = {entry["id"] for entry in self.shown_entries(now)}
        return sum(entry["id"] not in shown for entry in self.marked_entries())

    def toggle_marks(self, entries: Iterable[Entry]) -> None:
        """What is marked in part becomes marked whole."""
        ids = {entry["id"] for entry in entries}
        if ids <= self.marked:
            self.marked -= ids
        else:
            self.marked |= ids


def severity_style(severity: object) -> str:
    return str(severity) if severity in SEVERITY_WORDS else "dim"


def severity_cell(severity: object) -> Cell:
    return Cell(SEVERITY_WORDS.get(str(severity), "?"), severity_style(severity))


def message(title: str, what: str, todo: str, style: str = "bold") -> Content:
    return Content("\n\n").join(
        [Content.styled(title.upper(), style), Content(what), Content.styled(todo, "dim")]
    )


def trouble_message(trouble: Trouble) -> Content:
    is_loss = trouble.kind is not TroubleKind.FIRST_RUN
    style = "bold $text-error" if is_loss else "bold"
    return message(str(trouble.kind), trouble.what, trouble.todo, style)


def notice(snapshot: Snapshot, truncated: str, *, of_open: bool) -> str:
    """Why the rows are not the whole truth, or cannot be acted on; the latter concerns the open
    ones (`of_open`) alone."""
    trouble = snapshot.trouble
    if trouble is not None and trouble.kind is TroubleKind.FIRST_RUN:
        trouble = None  # other tabs may have rows all the same
    lines = [trouble.what, trouble.todo] if trouble else []
    if of_open and snapshot.read_only:
        lines.append(f"read-only: {snapshot.read_only}; nothing can be changed from here")
    if of_open and snapshot.locked:
        lines.append(
            f"locked: by {snapshot.locked} for a while now; a change waits for it, then is "
            "refused. If it hangs, end it: the lock goes with it"
        )
    return "\n".join([*lines, *filter(None, [truncated])])
