"""What every tab is, without its widget: items, a row for each, what they are about, and marks.

Nothing is done to items that are no entries, so they cannot be marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from monitor.core.snapshot import Trouble, TroubleKind
from monitor.widgets.part import Part

Item = TypeVar("Item")


class Tab(Generic[Item]):
    """`shown` are the items of its rows, by their keys."""

    name: ClassVar[str]
    title: ClassVar[str]
    columns: tuple[Column, ...]
    nothing_yet: ClassVar[tuple[str, str, str]] = ("", "", "")
    follow: ClassVar[bool] = False

    def __init__(self, model: TriageModel) -> None:
        self.model = model
        self.feed: Feed | None = None
        self.shown: dict[str, Item] = {}
        self.marked: set[str] = set()
        self.cursor_key = ""  # where the cursor was when another tab was shown
        self.now = model.snapshot.taken_at

    def rows(self, now: datetime) -> list[Row]:
        self.now = now
        self.shown = {self.key(item): item for item in self.matching()}
        return [Row(key, self.cells(item)) for key, item in self.shown.items()]

    def matching(self) -> Sequence[Item]:
        """Those which the filter lets through: of what an entry has too, the query says."""
        query, found = self.model.query, self.unfiltered()
        if not query.tests:
            return found
        return [item for item in found if self._passes(item, query)]

    def _passes(self, item: Item, query: Query) -> bool:
        try:
            return query.matches(self.as_entry(item), self.now)
        except ValueError:  # a line of the log that another program wrote
            return False

    def unfiltered(self) -> Sequence[Item]:
        raise NotImplementedError

    def key(self, item: Item) -> str:
        raise NotImplementedError

    def cells(self, item: Item) -> tuple[Cell, ...]:
        raise NotImplementedError

    def as_entry(self, item: Item) -> Entry:
        raise NotImplementedError

    def text(self, item: Item) -> Sequence[Part]:
        """The detail of an item that is no entry."""
        return ()

    def about(self, item: Item) -> Subject:
        """What it leads on from."""
        return Subject()

    # By the keys of rows, of which the list may have some that are gone

    def row_text(self, key: str) -> Sequence[Part]:
        return self.text(self.shown[key]) if key in self.shown else ()

    def subject(self, key: str) -> Subject:
        return self.about(self.shown[key]) if key in self.shown else Subject()

    def entries(self, key: str) -> Sequence[Entry]:
        """Those that the row is about."""
        return ()

    def turn(self, key: str) -> LiveTurn | None:
        """The turn that the row is."""
        return None

    def causes(self, key: str = "") -> set[str]:
        """What can be folded at the row, without a key anywhere."""
        return set()

    def why_empty(self) -> Content:
        if self.feed is None:
            return message("Reading", "", "")
        if self.feed.problem:
            return Content(self.feed.problem)
        if self.unfiltered():
            return message("Nothing matches", self.model.query.text, "esc clears the filter")
        trouble = self.model.snapshot.trouble
        if trouble is not None:
            return trouble_message(trouble)
        return message(*self.nothing_yet)

    def notice(self) -> str:
        """Why the rows are not the whole truth, or cannot be acted on."""
        trouble = self.model.snapshot.trouble
        if trouble is None or trouble.kind is TroubleKind.FIRST_RUN:
            return "\n".join(self.notes())  # other tabs may have rows all the same
        return "\n".join([trouble.what, trouble.todo, *self.notes()])

    def notes(self) -> list[str]:
        return []

    def count_label(self) -> str:
        """How much is in it, and how much of that is marked."""
        return ""

    def all_entries(self) -> Sequence[Entry]:
        """Without a filter."""
        return ()

    def shown_entries(self) -> list[Entry]:
        return [entry for key in self.shown for entry in self.entries(key)]

    def marked_entries(self) -> list[Entry]:
        return [entry for entry in self.all_entries() if entry["id"] in self.marked]

    def count_hidden_marks(self) -> int:
        """How many marked entries the filter hides."""
        shown = {entry["id"] for entry in self.shown_entries()}
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
