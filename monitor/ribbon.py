"""The ribbon of a turn (`interventions.view.ribbon`) in colours."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from interventions.view.ribbon import Phase, Status, took_text

_STYLES: dict[Status, str] = {
    "completed": "$text-success",
    "failed": "bold $text-error",
    "running": "bold $text-warning",
    "interrupted": "bold $text-warning",
    "not_run": "dim",
}


def marks(ribbon: Iterable[Phase]) -> Content:
    """`✓ ✓ ✓ ✗ · · · ·`"""
    return Content(" ").join(
        Content.styled(phase.symbol, _STYLES[phase.status]) for phase in ribbon
    )


def named(ribbon: Iterable[Phase]) -> Content:
    """A line for each phase, with how long it took."""
    lines = []
    for phase in ribbon:
        # How long an interrupted one ran nobody has measured.
        known = phase.duration_ms is not None and phase.status != "interrupted"
        took = f"  {took_text(phase.duration_ms or 0)}" if known else ""
        name = "dim" if phase.status == "not_run" else ""
        symbol = (f"{phase.symbol} ", _STYLES[phase.status])
        lines.append(Content.assemble(symbol, (phase.name, name), (took, "dim")))
    return Content("\n").join(lines)
