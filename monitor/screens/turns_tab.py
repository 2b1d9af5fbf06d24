"""Turns as they run: a row each, with the ribbon of its phases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from interventions.entry import Entry, complete
from interventions.plaintext import one_line
from interventions.retry.contract import LiveTurn
from interventions.times import from_text, short_duration, to_text
from interventions.view.query import Query
from interventions.view.ribbon import phases
from monitor.core.feeds import MOST_TURNS
from monitor.core.links import Subject
from monitor.core.rows import Cell, Column, Row
from monitor.screens.tab import Tab
from monitor.widgets.part import Part
from monitor.widgets.turn_text import live_turn, ribbon_line

_STATUS_STYLES = {"running": "high", "failed": "critical", "answered": "good", "clarify": "good"}


class TurnsTab(Tab):
    name = "turns"
    title = "Live turns"
    columns = (
        Column("TURN", 6, right=True),
        Column("AGE", 4, right=True),
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

    def unfiltered(self) -> Sequence[LiveTurn]:
        return self.feed.turns if self.feed else ()

    def rows(self, now: datetime) -> list[Row]:
        self._now = now
        query = self.model.view.query
        return [_row(turn, now) for turn in self.unfiltered() if turn_matches(turn, query, now)]

    def row_text(self, key: str) -> Sequence[Part]:
        turn = self.turn(key)
        return live_turn(turn, self._now) if turn else ()

    def turn(self, key: str) -> LiveTurn | None:
        return next((turn for turn in self.unfiltered() if _key(turn) == key), None)

    def subject(self, key: str) -> Subject:
        turn = self.turn(key)
        return Subject([turn["turn_id"]], turn.get("intervention_id")) if turn else Subject()

    def truncated_note(self) -> str:
        full = len(self.unfiltered()) >= MOST_TURNS
        return f"the latest {MOST_TURNS}; all: unified-flow turns list" if full else ""


def _key(turn: LiveTurn) -> str:
    return f"turn-{turn['turn_id']}"


def _row(turn: LiveTurn, now: datetime) -> Row:
    status = one_line(str(turn["status"]))
    steps = phases(turn.get("ribbon"))
    started = turn.get("started_at")
    running = next((phase.name for phase in steps if phase.status == "running"), "")
    cells = (
        Cell(str(turn["turn_id"])),
        Cell(short_duration(now - from_text(started)) if started else ""),
        Cell(status, _STATUS_STYLES.get(status, "dim")),
        Cell(ribbon_line(steps).plain, _STATUS_STYLES.get(status, "")),
        Cell(one_line(turn.get("doing") or running), "dim"),
        Cell(one_line(turn.get("question") or "")),
        Cell(one_line(turn.get("session_id") or ""), "dim"),
    )
    return Row(_key(turn), cells)


def turn_matches(turn: LiveTurn, query: Query, now: datetime) -> bool:
    """By the terms that a turn and an entry have in common; words are looked for in all that is
    shown of it."""
    return not query.tests or query.matches(as_entry(turn, now), now)


def as_entry(turn: LiveTurn, now: datetime) -> Entry:
    """What a turn and an entry have in common, for what is asked of entries."""
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
