"""What failed over a window of time: a row for each of the most frequent causes, below a chart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from interventions.entry import complete
from interventions.health import Cause
from interventions.plaintext import one_line
from interventions.times import to_text
from monitor.core.links import Subject
from monitor.core.rows import Cell, Column, Row, short_number
from monitor.screens.tab import Tab, severity_cell
from monitor.widgets.part import Part
from monitor.widgets.trends_view import cause_part, figures


class TrendsTab(Tab):
    name = "trends"
    title = "Trends"
    columns = (
        Column("TIMES", 5, right=True),
        Column("SEV", 4),
        Column("PHASE", 16, least=8, from_width=50),
        Column("MOST FREQUENT CAUSES", 0),
    )
    nothing_yet = ("Nothing failed", "in this window of time", "W takes another")

    def unfiltered(self) -> Sequence[Cause]:
        return self.feed.trends["causes"] if self.feed and self.feed.trends else ()

    def rows(self, now: datetime) -> list[Row]:
        return [_row(cause) for cause in self.unfiltered() if self._matches(cause, now)]

    def _matches(self, cause: Cause, now: datetime) -> bool:
        error_type, _, message = cause["sample"].partition(": ")
        failure = {**cause, "id": cause["fingerprint"], "created_at": to_text(now)}
        failure |= {"error_type": error_type, "error_message": message}
        return self.model.view.query.matches(complete(failure), now)

    def row_text(self, key: str) -> Sequence[Part]:
        if self.feed is None or self.feed.trends is None:
            return ()
        chosen = [cause_part(cause) for cause in self.unfiltered() if cause["fingerprint"] == key]
        return [*chosen, *figures(self.feed.trends)]

    def subject(self, key: str) -> Subject:
        return Subject(fingerprint=key)


def _row(cause: Cause) -> Row:
    cells = (
        Cell(short_number(cause["count"])),
        severity_cell(cause["severity"]),
        Cell(one_line(cause["phase"])),
        Cell(cause["sample"]),
    )
    return Row(cause["fingerprint"], cells)
