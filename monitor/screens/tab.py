"""What every tab is, without its widget: rows, what each of them stands for, and marks.

Nothing is done to rows that are no entries, so they cannot be marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from textual.content import Content

from interventions.entry import Entry
from interventions.retry.contract import LiveTurn
from interventions.view.groups import SEVERITY_WORDS
from interventions.view.query import Query
from monitor.core.feeds import Feed
from monitor.core.links import Subject
from monitor.core.model import TriageModel
from monitor.core.rows import Cell, Column, Row
from monitor.core.source import TroubleKind
from monitor.widgets.text_view import Part

Found = TypeVar("Found")


@dataclass(frozen=True)
class Item(Row):
    """A row, with the entries or the turn that it stands for, what it leads on from and, if it is
    no entry, its detail."""

    entries: Sequence[Entry] = field(default=(), compare=False)
    turn: LiveTurn | None = field(default=None, compare=False)
    subject: Subject = field(default=Subject(), compare=False)
    text: Callable[[], Sequence[Part]] = field(default=tuple, compare=False)


class Tab(Generic[Found]):
    """`shown` are its rows by their keys; the list may have some that are gone."""

    name: ClassVar[str]
    title: ClassVar[str]
    columns: tuple[Column, ...]
    nothing_yet: ClassVar[tuple[str, str, str]] = ("", "", "")
    follow: ClassVar[bool] = False
    full: ClassVar[tuple[int, str]] = (0, "")  # how many are read at most, and what is said then

    def __init__(self, model: TriageModel) -> None:
        self.model = model
        self.feed: Feed | None = None
        self.shown: dict[str, Item] = {}
        self.marked: set[str] = set()
        self.cursor_key = ""  # where the cursor was when another tab was shown
        self.now = model.snapshot.taken_at

    def rows(self, now: datetime) -> list[Item]:
        self.now = now
        self.shown = {item.key: item for item in map(self.item, self.matching())}
        return list(self.shown.values())

    def matching(self) -> Sequence[Found]:
        """Those which the filter lets through: of what an entry has too, the query says."""
        query, found = self.model.query, self.unfiltered()
        if not query.tests:
            return found
        return [each for each in found if self._passes(each, query)]

    def _passes(self, found: Found, query: Query) -> bool:
        try:
            return query.matches(self.as_entry(found), self.now)
        except ValueError:  # a line of the log that another program wrote
            return False

    def unfiltered(self) -> Sequence[Found]:
        return self.feed.found if self.feed else ()

    def item(self, found: Found) -> Item:
        raise NotImplementedError

    def as_entry(self, found: Found) -> Entry:
        raise NotImplementedError

    def why_empty(self) -> Content:
        if self.feed is None:
            return message("Reading", "", "")
        if self.feed.problem:
            return Content(self.feed.problem)
        trouble, found = self.model.snapshot.trouble, self.unfiltered()
        if trouble is not None and not (found and trouble.kind is TroubleKind.FIRST_RUN):
            is_loss = trouble.kind is not TroubleKind.FIRST_RUN
            style = "bold $text-error" if is_loss else "bold"
            return message(str(trouble.kind), trouble.what, trouble.todo, style)
        if found:
            query = f"{self.model.query.text}  (none of {len(found)})"
            return message("Nothing matches", query, "esc clears the filter")
        return message(*self.nothing_yet)

    def notice(self) -> str:
        """Why the rows are not the whole truth, or cannot be acted on."""
        trouble = self.model.snapshot.trouble
        if trouble is None or trouble.kind is TroubleKind.FIRST_RUN:
            return "\n".join(self.notes())  # other tabs may have rows all the same
        return "\n".join([trouble.what, trouble.todo, *self.notes()])

    def notes(self) -> list[str]:
        most, note = self.full
        return [note] if 0 < most <= len(self.unfiltered()) else []

    def count_label(self) -> str:
        """How much is in it, where that can be known, and how much of that is marked."""
        count = len(self.marked_entries())
        return f"({count} marked)" if count else ""

    def all_entries(self) -> Sequence[Entry]:
        """What the tab lists without a filter."""
        return ()

    def shown_entries(self) -> list[Entry]:
        return [entry for item in self.shown.values() for entry in item.entries]

    def marked_entries(self) -> list[Entry]:
        known = self.all_entries() if self.marked else ()  # asked for each key that may be grey
        return [entry for entry in known if entry["id"] in self.marked]

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
