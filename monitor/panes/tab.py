"""What every tab is, without its widget: rows, the entries behind them, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.content import Content

from interventions.entry import Entry
from monitor.core.feeds import Feed
from monitor.core.model import Model
from monitor.core.rows import Column, Row
from monitor.states import told


class Tab:
    name: ClassVar[str]
    title: ClassVar[str]
    columns: ClassVar[Sequence[Column]]
    of_entries: ClassVar[bool] = False
    follow: ClassVar[bool] = False

    def __init__(self, model: Model) -> None:
        self.model = model
        self.feed: Feed | None = None
        self.held: Feed | None = None

    def rows(self, now: datetime) -> list[Row]:
        raise NotImplementedError

    def why_empty(self) -> Content:
        if self.feed is None:
            return told("Reading", "", "")
        if self.feed.problem:
            return Content(self.feed.problem)
        if self._everything():
            return told("Nothing matches", self.model.view.query.text, "esc clears the filter")
        trouble = self.model.snapshot.trouble
        if trouble is not None:
            return told(str(trouble.kind), trouble.what, trouble.todo)
        return told(*self._nothing())

    def _everything(self) -> Sequence[object]:
        """What there is without a filter."""
        raise NotImplementedError

    def _nothing(self) -> tuple[str, str, str]:
        """What is told where there is nothing."""
        raise NotImplementedError

    def entries(self, key: str) -> Sequence[Entry]:
        """What the row stands for; none where rows are no entries."""
        return ()

    def more(self) -> str:
        """Where there is more than the rows show."""
        return ""

    def text(self, key: str) -> Content:
        """The detail of a row that is no entry."""
        return Content("")

    # Where rows are no entries nothing is done to them, and nothing can be marked.

    def marked_entries(self) -> list[Entry]:
        return []

    def marked_and_hidden(self, now: datetime) -> int:
        return 0

    def mark(self, key: str) -> None:
        return

    def mark_all(self, now: datetime) -> None:
        return

    def unmark(self) -> bool:
        """Whether there were marks."""
        return False

    def remark(self) -> str:
        """How much is in it, and how much of that is marked."""
        return ""
