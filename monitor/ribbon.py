"""The phases of a turn in one line: what ran, what failed, what never ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from textual.content import Content

from interventions.view.plaintext import one_line

_SHOWN = {
    "completed": ("✓", "$text-success"),
    "failed": ("✗", "bold $text-error"),
    "running": ("▸", "bold $text-warning"),
    "interrupted": ("■", "bold $text-warning"),
    "not_run": ("·", "dim"),
}


@dataclass(frozen=True)
class Phase:
    name: str
    status: str
    duration_ms: float | None = None


def phases(value: Any) -> list[Phase]:
    """From `context.turn.ribbon`; anything else that may stand there gives none."""
    found = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            took = item.get("duration_ms")
            number = float(took) if isinstance(took, int | float) else None
            name = one_line(str(item.get("name", "?")))
            found.append(Phase(name, str(item.get("status")), number))
    return found


def marks(ribbon: Iterable[Phase]) -> Content:
    """`✓ ✓ ✓ ✗ · · · ·`"""
    return Content(" ").join(
        Content.styled(*_SHOWN.get(phase.status, _SHOWN["not_run"])) for phase in ribbon
    )


def plain_marks(ribbon: Iterable[Phase]) -> str:
    return " ".join(_SHOWN.get(phase.status, _SHOWN["not_run"])[0] for phase in ribbon)


def named(ribbon: Iterable[Phase]) -> Content:
    """A line for each phase, with how long it took."""
    lines = []
    for phase in ribbon:
        symbol, style = _SHOWN.get(phase.status, _SHOWN["not_run"])
        # How long an interrupted one ran nobody has measured.
        known = phase.duration_ms is not None and phase.status != "interrupted"
        took = f"  {took_text(phase.duration_ms or 0)}" if known else ""
        name = "dim" if phase.status == "not_run" else ""
        lines.append(Content.assemble((f"{symbol} ", style), (phase.name, name), (took, "dim")))
    return Content("\n").join(lines)


def took_text(duration_ms: float) -> str:
    if duration_ms < 1:
        return "under 1 ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 1000 else f"{duration_ms / 1000:.1f} s"


def summary(ribbon: Iterable[Phase]) -> str:
    """`planner failed after 12 ms, 4 never ran`"""
    all_phases = list(ribbon)
    words = []
    for phase in all_phases:
        if phase.status == "failed":
            after = f" after {took_text(phase.duration_ms)}" if phase.duration_ms else ""
            words.append(f"{phase.name} failed{after}")
    never = sum(1 for phase in all_phases if phase.status == "not_run")
    if never:
        words.append(f"{never} never ran")
    return ", ".join(words)
