"""The tabs whose rows are no entries: turns as they run, the end of the error log, and what failed
most over a window of time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from textual.content import Content

from interventions.entry import Entry, complete, short_id
from interventions.health import Cause
from interventions.plaintext import clean, one_line
from interventions.retry.contract import LiveTurn
from interventions.times import from_text, short_duration, to_text
from interventions.view.ribbon import phases
from monitor.core.feeds import MOST_LINES, MOST_TURNS
from monitor.core.links import Subject
from monitor.core.rows import Cell, Column, short_number
from monitor.screens.tab import Item, Tab, severity_cell
from monitor.widgets.part import Part
from monitor.widgets.trends_view import cause_part, figures
from monitor.widgets.turn_text import live_turn, ribbon_line

LogLine = tuple[str, dict[str, Any]]
_STYLES = {"running": "high", "failed": "critical", "answered": "good", "clarify": "good"}
_STYLES |= {"dropped": "critical", "merged": "high", "counted": "medium", "accepted": "good"}


class TurnsTab(Tab[LiveTurn]):
    """A row each, with the ribbon of its phases; running ones first, then what changed last."""

    name = "turns"
    title = "Live turns"
    columns = (
        Column("TURN", 6, right=True),
        Column("LAST", 4, right=True),
        Column("STATUS", 11),
        Column("PHASES", 15),
        Column("DOING", 24, least=8, from_width=72),
        Column("QUESTION", 0),
        Column("SESSION", 14, least=8, from_width=90),
    )
    nothing_yet = (
        "No turns yet",
        "a turn appears here when it begins",
        "unified-flow ask QUESTION",
    )

    def item(self, found: LiveTurn) -> Item:
        status, steps = one_line(str(found["status"])), phases(found.get("ribbon"))
        last = found.get("changed_at") or found.get("started_at")
        running = next((phase.name for phase in steps if phase.status == "running"), "")
        cells = (
            Cell(str(found["turn_id"])),
            Cell(short_duration(self.now - from_text(last)) if last else ""),
            Cell(status, _STYLES.get(status, "dim")),
            Cell(ribbon_line(steps).plain, _STYLES.get(status, "")),
            Cell(one_line(found.get("doing") or running), "dim"),
            Cell(one_line(found.get("question") or "")),
            Cell(one_line(found.get("session_id") or ""), "dim"),
        )
        subject = Subject([found["turn_id"]], found.get("intervention_id"))
        text = partial(live_turn, found, self.now)
        return Item(f"turn-{found['turn_id']}", cells, turn=found, subject=subject, text=text)

    def as_entry(self, found: LiveTurn) -> Entry:
        return turn_as_entry(found, self.now)

    def notes(self) -> list[str]:
        full = len(self.unfiltered()) >= MOST_TURNS
        return [f"the latest {MOST_TURNS}; all: unified-flow turns list"] if full else []


def turn_as_entry(turn: LiveTurn, now: datetime) -> Entry:
    """What a turn and an entry have in common; words are looked for in all that is shown of it."""
    steps = phases(turn.get("ribbon"))
    stopped = next((one.name for one in steps if one.status in ("failed", "running")), "-")
    words = (turn["status"], turn.get("question"), turn.get("doing"), turn.get("error"))
    entry = {
        "id": str(turn.get("intervention_id") or f"turn-{turn['turn_id']}"),
        "created_at": turn.get("started_at") or to_text(now),
        "severity": "-",
        "type": "-",
        "phase": stopped,
        "error_type": (turn.get("error") or "-").partition(":")[0],
        "error_message": " ".join(filter(None, words)),
        "session_id": turn.get("session_id"),
        "turn_id": turn["turn_id"],
    }
    return complete(entry)


class LogTab(Tab[LogLine]):
    """Every failure a line, whatever became of it in the queue."""

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

    def item(self, found: LogLine) -> Item:
        key, record = found
        admission = one_line(str(record.get("admission") or "?"))
        error = f"{record.get('error_type')}: {record.get('error_message')}"[:500]
        why = one_line(str(record.get("reason") or ""))
        cells = (
            Cell(one_line(str(record.get("logged_at") or ""))[11:19]),
            Cell(admission, _STYLES.get(admission, "dim")),
            Cell(one_line(short_id(str(record.get("intervention_id") or "-")))),
            severity_cell(record.get("severity")),
            Cell(one_line(str(record.get("phase")))),
            Cell(one_line(error), badges=((f"[{why}]", "dim"),) if why else ()),
        )
        turn, cause = record.get("turn_id"), str(record.get("fingerprint") or "")
        turns = [turn] if isinstance(turn, int) else []
        subject = Subject(turns, record.get("intervention_id"), cause)
        return Item(key, cells, subject=subject, text=partial(_record_parts, record))

    def as_entry(self, found: LogLine) -> Entry:
        """In the state in which the failure was logged."""
        record = found[1]
        return complete({"created_at": record.get("logged_at"), "id": "-", **record})

    def notes(self) -> list[str]:
        full = len(self.unfiltered()) >= MOST_LINES
        return [f"the latest {MOST_LINES} lines of today's error log"] if full else []


def _record_parts(record: Mapping[str, Any]) -> list[Part]:
    """A line of the log whole: long texts as they are, the rest as JSON."""
    lines: list[Content] = []
    for name, value in record.items():
        if value in (None, "", [], {}):
            continue
        is_text = isinstance(value, str)
        text = value if is_text else json.dumps(value, indent=2, ensure_ascii=False)
        between = "\n" if "\n" in text else ""
        part = Content.assemble((f"{clean(name)}: ", "dim"), between, clean(text))
        lines += part.split("\n", allow_blank=True)
    return [Part("", lines)]


class TrendsTab(Tab[Cause]):
    """A row for each of the most frequent causes, below a chart."""

    name = "trends"
    title = "Trends"
    columns = (
        Column("TIMES", 5, right=True),
        Column("SEV", 4),
        Column("PHASE", 16, least=8, from_width=50),
        Column("MOST FREQUENT CAUSES", 0),
    )
    nothing_yet = ("Nothing failed", "in this window of time", "W takes another")

    def item(self, found: Cause) -> Item:
        cells = (
            Cell(short_number(found["count"])),
            severity_cell(found["severity"]),
            Cell(one_line(found["phase"])),
            Cell(found["sample"]),
        )
        subject = Subject(fingerprint=found["fingerprint"])
        return Item(found["fingerprint"], cells, subject=subject, text=partial(self._text, found))

    def _text(self, cause: Cause) -> Sequence[Part]:
        trends = self.feed.trends if self.feed else None
        return [cause_part(cause), *(figures(trends) if trends else ())]

    def as_entry(self, found: Cause) -> Entry:
        error_type, _, message = found["sample"].partition(": ")
        failure = {**found, "id": found["fingerprint"], "created_at": to_text(self.now)}
        return complete(failure | {"error_type": error_type, "error_message": message})
