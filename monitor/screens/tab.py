"""What every tab is, without its widget: rows, the entries behind them, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.content import Content

from interventions.entry import Entry
from interventions.retry.entry_points import LiveTurn
from monitor.core.feeds import Feed
from monitor.core.links import Subject
from monitor.core.model import TriageModel
from monitor.core.rows import Column, Row
from monitor.core.snapshot import Snapshot, Trouble, TroubleKind
from monitor.widgets.part import Part


class Tab:
    """Nothing is done to rows that are no entries, so they cannot be marked."""

    name: ClassVar[str]
    title: ClassVar[str]
    columns: tuple[Column, ...]
    nothing_yet: ClassVar[tuple[str, str, str]] = ("", "", "")
    of_entries: ClassVar[bool] = False
    follow: ClassVar[bool] = False

    def __init__(self, model: TriageModel) -> None:
        self.model = model
        self.feed: Feed | None = None
        self.pending_feed: Feed | None = None

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
        return Subject()

    def truncated_note(self) -> str:
        """Where there is more than the rows show."""
        return ""

    def count_label(self) -> str:
        """How much is in it, and how much of that is marked."""
        return ""

    def marked_entries(self) -> list[Entry]:
        return []

    def count_hidden_marks(self, now: datetime) -> int:
        """How many marked entries the filter hides."""
        return 0

    def toggle_mark(self, key: str) -> None:
        return

    def toggle_all_marks(self, now: datetime) -> None:
        return

    def clear_marks(self) -> bool:
        """Whether there were any."""
        return False


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
