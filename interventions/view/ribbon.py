"""The phases of a turn: what ran, failed, never ran. Without colours, which a front end adds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from interventions.plaintext import one_line
from interventions.times import from_text

Status = Literal["completed", "failed", "running", "interrupted", "not_run"]
STATUSES: tuple[Status, ...] = get_args(Status)
SYMBOLS: dict[Status, str] = dict(zip(STATUSES, "✓✗▸■·", strict=True))


@dataclass(frozen=True)
class Phase:
    name: str
    status: Status
    duration_ms: float | None = None

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.status]


def phases(value: Any) -> list[Phase]:
    """From `context.turn.ribbon`; anything else there gives none."""
    found = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            took = item.get("duration_ms")
            number = float(took) if isinstance(took, int | float) else None
            name = one_line(str(item.get("name", "?")))
            # An unknown status only means that the phase is not done.
            status = item.get("status")
            found.append(Phase(name, status if status in STATUSES else "not_run", number))
    return found


@dataclass(frozen=True)
class Step:
    """A step of a LiveTurn; its phase has its name and time, whatever its kind."""

    kind: str
    phase: Phase
    began: datetime
    text: str

    def took(self, now: datetime) -> timedelta | None:
        """None where nobody has measured it."""
        if self.phase.duration_ms is not None:
            return timedelta(milliseconds=self.phase.duration_ms)
        return max(now - self.began, timedelta(0)) if self.phase.status == "running" else None


def steps(value: Any) -> list[Step]:
    """From `LiveTurn.steps`; what is none of them is left out."""
    found = []
    for item in value if isinstance(value, list) else []:
        for phase in phases([item]):
            with suppress(ValueError):
                began = from_text(str(item.get("started_at")))
                found.append(Step(str(item.get("kind")), phase, began, str(item.get("text") or "")))
    return found


def marks(ribbon: Iterable[Phase]) -> str:
    """`✓ ✓ ✓ ✗ · · · ·`"""
    return " ".join(phase.symbol for phase in ribbon)


def in_line(ribbon: Iterable[Phase]) -> str:
    """`✓ planner  ✗ coordinator  · synthesis`"""
    return "  ".join(f"{phase.symbol} {phase.name}" for phase in ribbon)


def took_text(duration_ms: float) -> str:
    if duration_ms < 1:
        return "under 1 ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 1000 else f"{duration_ms / 1000:.1f} s"


def summary(ribbon: Iterable[Phase]) -> str:
    """`planner failed after 12 ms, 4 never ran`"""
    words, never = [], 0
    for phase in ribbon:
        never += phase.status == "not_run"
        if phase.status == "failed":
            after = f" after {took_text(phase.duration_ms)}" if phase.duration_ms else ""
            words.append(f"{phase.name} failed{after}")
    if never:
        words.append(f"{never} never ran")
    return ", ".join(words)
