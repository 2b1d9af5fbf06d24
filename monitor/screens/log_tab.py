"""The end of the error log: every failure a line, whatever became of it in the queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from textual.content import Content

from interventions.entry import complete, short_id
from interventions.plaintext import clean, one_line
from interventions.view.query import Query
from monitor.core.feeds import MOST_LINES
from monitor.core.links import Subject
from monitor.core.model import TriageModel
from monitor.core.rows import Cell, Column, Row
from monitor.screens.tab import Tab, severity_cell
from monitor.widgets.part import Part

_ADMISSION_STYLES = {
    "dropped": "critical",
    "merged": "high",
    "counted": "medium",
    "accepted": "good",
}


class LogTab(Tab):
    name = "log"
    title = "Log"
    columns = (
        Column("TIME", 8),
        Column("ADMISSION", 9),
        Column("ENTRY", 6),
        Column("SEV", 4),
        Column("PHASE", 16, least=10, from_width=64),
        Column("ERROR", 0),
    )
    nothing_yet = ("Nothing failed today", "every failure is a line here", "")
    follow = True

    def __init__(self, model: TriageModel) -> None:
        super().__init__(model)
        self._rows: dict[str, Row] = {}

    def unfiltered(self) -> Sequence[tuple[str, dict[str, Any]]]:
        return self.feed.log if self.feed else ()

    def rows(self, now: datetime) -> list[Row]:
        """A line never changes, so its row is made once."""
        query, found = self.model.view.query, self.unfiltered()
        shown = [(key, record) for key, record in found if _matches(record, query, now)]
        self._rows = {key: self._rows.get(key) or _row(key, record) for key, record in shown}
        return list(self._rows.values())

    def row_text(self, key: str) -> Sequence[Part]:
        found = (record for own, record in self.unfiltered() if own == key)
        return next(([Part("", _record_text(record))] for record in found), ())

    def subject(self, key: str) -> Subject:
        record = dict(self.unfiltered()).get(key, {})
        turn, cause = record.get("turn_id"), str(record.get("fingerprint") or "")
        turns = [turn] if isinstance(turn, int) else []
        return Subject(turns, record.get("intervention_id"), cause)

    def truncated_note(self) -> str:
        full = len(self.unfiltered()) >= MOST_LINES
        return f"the latest {MOST_LINES} lines of today's error log" if full else ""


def _row(key: str, record: dict[str, Any]) -> Row:
    admission = one_line(str(record.get("admission") or "?"))
    error = f"{record.get('error_type')}: {record.get('error_message')}"[:500]
    why = one_line(str(record.get("reason") or ""))
    cells = (
        Cell(one_line(str(record.get("logged_at") or ""))[11:19]),
        Cell(admission, _ADMISSION_STYLES.get(admission, "dim")),
        Cell(one_line(short_id(str(record.get("intervention_id") or "-")))),
        severity_cell(record.get("severity")),
        Cell(one_line(str(record.get("phase")))),
        Cell(one_line(error), badges=((f"[{why}]", "dim"),) if why else ()),
    )
    return Row(key, cells)


def _matches(record: dict[str, Any], query: Query, now: datetime) -> bool:
    """The line is matched as an entry in the state in which the failure was logged."""
    if not query.tests:
        return True
    try:
        failure = complete({"created_at": record.get("logged_at"), "id": "-", **record})
    except ValueError:
        return False
    return query.matches(failure, now)


def _record_text(record: dict[str, Any]) -> list[Content]:
    """The line whole: long texts as they are, the rest as JSON."""
    parts = []
    for name, value in record.items():
        if value in (None, "", [], {}):
            continue
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        between = "\n" if "\n" in text else ""
        parts.append(Content.assemble((f"{clean(name)}: ", "dim"), between, clean(text)))
    return [line for part in parts for line in part.split("\n", allow_blank=True)]
