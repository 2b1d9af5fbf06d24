"""The four tabs without their widgets: rows, the entries behind them, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.content import Content

from interventions.entry import Entry, closed_at
from interventions.grouping import Group
from monitor import listing
from monitor.feeds import MOST_TURNS, Feed
from monitor.logtail import MOST_LINES
from monitor.model import Model
from monitor.panes import log, turns
from monitor.panes.made import Made, minute
from monitor.states import told, why_empty
from monitor.widgets.rows import Column, Row

MOST_HISTORY = 500


def _more(left: int, where: str) -> str:
    return f"and {left} older ones, which a filter finds, or: {where}"


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
        trouble = self.model.snapshot.trouble
        if trouble is not None:
            return told(str(trouble.kind), trouble.what, trouble.todo)
        return told(*self._nothing())

    def _nothing(self) -> tuple[str, str, str]:
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

    def _nothing_matches(self) -> tuple[str, str, str]:
        return ("Nothing matches", self.model.view.query.text, "esc clears the filter")


class OpenTab(Tab):
    name = "open"
    title = "Open"
    columns = listing.OPEN_COLUMNS
    of_entries = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._groups: Sequence[Group] = ()
        self._made = Made()

    def rows(self, now: datetime) -> list[Row]:
        model = self.model
        of = (model.snapshot, model.view, frozenset(model.marked), frozenset(model.new))
        return self._made.rows(of, now, lambda: self._make(now))

    def _make(self, now: datetime) -> tuple[list[Row], list[str]]:
        self._groups = self.model.groups(now)
        new, marked = self.model.new, self.model.marked
        rows = [listing.open_row(group, now, new=new, marked=marked) for group in self._groups]
        return rows, [group.first["created_at"] for group in self._groups]

    def why_empty(self) -> Content:
        return why_empty(self.model.snapshot, self.model.view.query.text)

    def entries(self, key: str) -> Sequence[Entry]:
        return next((group.entries for group in self._groups if group.key == key), ())

    def marked_entries(self) -> list[Entry]:
        if not self.model.marked:
            return []
        return [entry for entry in self.model.snapshot.entries if entry["id"] in self.model.marked]

    def marked_and_hidden(self, now: datetime) -> int:
        if not self.model.marked:
            return 0
        shown = {entry["id"] for group in self.model.groups(now) for entry in group.entries}
        return len(self.model.marked - shown)

    def mark(self, key: str) -> None:
        self.model.mark({entry["id"] for entry in self.entries(key)})

    def mark_all(self, now: datetime) -> None:
        groups = self.model.groups(now)
        self.model.mark({entry["id"] for group in groups for entry in group.entries})

    def unmark(self) -> bool:
        found, self.model.marked = bool(self.model.marked), set()
        return found

    def remark(self) -> str:
        return self.model.counted()


class HistoryTab(Tab):
    name = "history"
    title = "History"
    columns = listing.HISTORY_COLUMNS
    of_entries = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._marked: set[str] = set()
        # What was found and made last: a long past is not gone through for every key, and of one
        # that grows only what is new.
        self._of: tuple[object, object] = (None, None)
        self._found: list[Entry] = []
        self._judged: dict[str, tuple[Entry, bool]] = {}
        self._shown_now: dict[str, tuple[Entry, str, bool, Row]] = {}
        self._made = Made()

    def rows(self, now: datetime) -> list[Row]:
        of = (self._matching(now), frozenset(self._marked))
        return self._made.rows(of, now, lambda: self._make(now))

    def _make(self, now: datetime) -> tuple[list[Row], list[str]]:
        shown: dict[str, tuple[Entry, str, bool, Row]] = {}
        for entry in self._shown(now):
            own, marked = entry["id"], entry["id"] in self._marked
            ago = listing.closed_ago(entry, now)
            known = self._shown_now.get(own)
            if known is None or known[:3] != (entry, ago, marked):
                known = (entry, ago, marked, listing.history_row(entry, now, marked=marked))
            shown[own] = known
        self._shown_now = shown
        closed = [closed_at(entry) or entry["last_seen"] for entry, *_ in shown.values()]
        return [row for *_, row in shown.values()], closed

    def _shown(self, now: datetime) -> list[Entry]:
        return self._matching(now)[:MOST_HISTORY]

    def _matching(self, now: datetime) -> list[Entry]:
        """The same list as long as nothing came and no age in the query may have become true."""
        query, closed = self.model.view.query, self._closed()
        asked = (query.text, minute(now))
        if asked != self._of[1]:
            self._judged = {}
        elif closed is self._of[0]:
            return self._found
        if query.tests:
            before, judged = self._judged, {}
            for entry in closed:
                known = before.get(entry["id"])
                if known is None or known[0] is not entry:
                    known = (entry, query.matches(entry, now))
                judged[entry["id"]] = known
            self._judged = judged
            self._found = [entry for entry, matches in judged.values() if matches]
        else:
            self._found = list(closed)
        self._of = (closed, asked)
        return self._found

    def marked_entries(self) -> list[Entry]:
        if not self._marked:
            return []
        return [entry for entry in self._closed() if entry["id"] in self._marked]

    def marked_and_hidden(self, now: datetime) -> int:
        shown = {entry["id"] for entry in self._shown(now)}
        return sum(1 for entry in self.marked_entries() if entry["id"] not in shown)

    def mark(self, key: str) -> None:
        self._marked ^= {key}

    def mark_all(self, now: datetime) -> None:
        shown = {entry["id"] for entry in self._shown(now)}
        self._marked = self._marked - shown if shown <= self._marked else self._marked | shown

    def unmark(self) -> bool:
        found, self._marked = bool(self.marked_entries()), set()
        return found

    def remark(self) -> str:
        count = len(self.marked_entries())
        return f"({count} marked)" if count else ""

    def more(self) -> str:
        left = len(self._found) - MOST_HISTORY
        return _more(left, "interventions history QUERY") if left > 0 else ""

    def _nothing(self) -> tuple[str, str, str]:
        if self._closed():
            return self._nothing_matches()
        return ("No history", "nothing was closed yet", "")

    def entries(self, key: str) -> Sequence[Entry]:
        found = self._shown_now.get(key)
        return [found[0]] if found is not None else []

    def _closed(self) -> Sequence[Entry]:
        return self.feed.history if self.feed else ()


class TurnsTab(Tab):
    name = "turns"
    title = "Live turns"
    columns = turns.COLUMNS

    def more(self) -> str:
        full = self.feed is not None and len(self.feed.turns) >= MOST_TURNS
        return f"the latest {MOST_TURNS}; all: unified-flow turns list" if full else ""

    def rows(self, now: datetime) -> list[Row]:
        query, found = self.model.view.query, self.feed.turns if self.feed else ()
        return [turns.row(turn, now) for turn in found if turns.matches(turn, query, now)]

    def _nothing(self) -> tuple[str, str, str]:
        if self.feed and self.feed.turns:
            return self._nothing_matches()
        return ("No turns yet", "a turn appears here when it begins", "unified-flow ask QUESTION")

    def text(self, key: str) -> Content:
        found = self.feed.turns if self.feed else ()
        return next((turns.text(t) for t in found if f"turn-{t['turn_id']}" == key), Content(""))


class LogTab(Tab):
    name = "log"
    title = "Log"
    columns = log.COLUMNS
    follow = True

    def more(self) -> str:
        full = self.feed is not None and len(self.feed.log) >= MOST_LINES
        return f"the latest {MOST_LINES} lines of today's error log" if full else ""

    def rows(self, now: datetime) -> list[Row]:
        query, found = self.model.view.query, self.feed.log if self.feed else ()
        return [log.row(key, record) for key, record in found if log.matches(record, query, now)]

    def _nothing(self) -> tuple[str, str, str]:
        if self.feed and self.feed.log:
            return self._nothing_matches()
        return ("Nothing failed today", "every failure is a line here", "")

    def text(self, key: str) -> Content:
        found = self.feed.log if self.feed else ()
        return next((log.text(record) for own, record in found if own == key), Content(""))
