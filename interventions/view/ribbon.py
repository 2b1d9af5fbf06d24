"""The phases of a turn: what ran, failed, never ran. Without colours, which a front end adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from interventions.plaintext import one_line

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
    """The phases in `context.turn.ribbon`; a value of another form has none."""
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


def in_line(ribbon: Iterable[Phase]) -> str:
    """`✓ planner  ✗ coordinator  · synthesis`"""
    return "  ".join(f"{phase.symbol} {phase.name}" for phase in ribbon)


def took_text(duration_ms: float) -> str:
    if duration_ms < 1:
        return "under 1 ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 1000 else f"{duration_ms / 1000:.1f} s"
