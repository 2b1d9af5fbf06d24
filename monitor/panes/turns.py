"""Turns as they run: a row each, with the ribbon of its phases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from textual.content import Content

from interventions.durations import short_duration
from interventions.entry import complete
from interventions.retry.turns import LiveTurn
from interventions.timestamps import from_text, to_text
from interventions.view.plaintext import clean, one_line
from interventions.view.query import Query
from interventions.view.ribbon import Phase, marks, phases
from monitor import ribbon
from monitor.core.feeds import MOST_TURNS
from monitor.core.rows import Cell, Column, Row
from monitor.panes.tab import Tab

COLUMNS = (
    Column("TURN", 6, right=True),
    Column("AGE", 4, right=True),
    Column("STATUS", 11),
    Column("PHASES", 15),
    Column("DOING", 24, least=8, from_width=72),
    Column("QUESTION", 0),
    Column("SESSION", 14, least=8, from_width=90),
)
_STYLE = {"running": "high", "failed": "critical", "answered": "good", "clarify": "good"}


class TurnsTab(Tab):
    name = "turns"
    title = "Live turns"
    columns = COLUMNS

    def more(self) -> str:
        full = self.feed is not None and len(self.feed.turns) >= MOST_TURNS
        return f"the latest {MOST_TURNS}; all: unified-flow turns list" if full else ""

    def rows(self, now: datetime) -> list[Row]:
        query = self.model.view.query
        return [row(turn, now) for turn in self._everything() if matches(turn, query, now)]

    def _everything(self) -> Sequence[LiveTurn]:
        return self.feed.turns if self.feed else ()

    def _nothing(self) -> tuple[str, str, str]:
        return ("No turns yet", "a turn appears here when it begins", "unified-flow ask QUESTION")

    def text(self, key: str) -> Content:
        found = self._everything()
        return next((text(turn) for turn in found if _key(turn) == key), Content(""))


def row(turn: LiveTurn, now: datetime) -> Row:
    status = one_line(str(turn["status"]))
    steps = phases(turn.get("ribbon"))
    cells = (
        Cell(str(turn["turn_id"])),
        Cell(_age(turn, now)),
        Cell(status, _STYLE.get(status, "dim")),
        Cell(marks(steps), _STYLE.get(status, "")),
        Cell(_doing(turn, steps), "dim"),
        Cell(one_line(turn.get("question") or "")),
        Cell(one_line(turn.get("session_id") or ""), "dim"),
    )
    return Row(_key(turn), cells)


def matches(turn: LiveTurn, query: Query, now: datetime) -> bool:
    """By the terms that mean something of a turn; text is looked for in all that is shown of it."""
    if not query.tests:
        return True
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
    return query.matches(complete(entry), now)


def text(turn: LiveTurn) -> Content:
    steps = phases(turn.get("ribbon"))
    head = f"turn {turn['turn_id']}, {turn['status']}, session {turn.get('session_id', '?')}"
    parts = [
        Content.styled(one_line(head), "bold"),
        Content(clean(turn.get("question") or "")),
        ribbon.named(steps),
    ]
    if turn.get("doing"):
        parts.append(Content.assemble(("now: ", "dim"), one_line(turn["doing"])))
    if turn.get("error"):
        parts.append(Content.styled(clean(turn["error"]), "$text-error"))
    if turn.get("intervention_id"):
        parts.append(Content(f"intervention {one_line(str(turn['intervention_id']))}"))
    if turn["status"] == "interrupted":
        parts.append(Content(f"it goes on with: unified-flow resume {turn['turn_id']}"))
    return Content("\n\n").join(part for part in parts if part.plain)


def _doing(turn: LiveTurn, steps: list[Phase]) -> str:
    running = next((phase.name for phase in steps if phase.status == "running"), "")
    return one_line(turn.get("doing") or running)


def _age(turn: LiveTurn, now: datetime) -> str:
    started = turn.get("started_at")
    return short_duration(now - from_text(started)) if started else ""


def _key(turn: LiveTurn) -> str:
    return f"turn-{turn['turn_id']}"
