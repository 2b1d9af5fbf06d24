"""A turn as styled text: the ribbon of its phases, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from interventions.plaintext import clean, one_line
from interventions.retry.entry_points import LiveTurn
from interventions.view.ribbon import Phase, Status, phases, took_text

_STATUS_STYLES: dict[Status, str] = {
    "completed": "$text-success",
    "failed": "bold $text-error",
    "running": "bold $text-warning",
    "interrupted": "bold $text-warning",
    "not_run": "dim",
}


def ribbon_line(ribbon: Iterable[Phase]) -> Content:
    """`✓ ✓ ✓ ✗ · · · ·`"""
    return Content(" ").join(
        Content.styled(phase.symbol, _STATUS_STYLES[phase.status]) for phase in ribbon
    )


def ribbon_names(ribbon: Iterable[Phase]) -> list[Content]:
    """A line for each phase, with how long it took."""
    lines = []
    for phase in ribbon:
        # Nobody has measured how long an interrupted one ran.
        known = phase.duration_ms is not None and phase.status != "interrupted"
        took = f"  {took_text(phase.duration_ms or 0)}" if known else ""
        name = "dim" if phase.status == "not_run" else ""
        symbol = (f"{phase.symbol} ", _STATUS_STYLES[phase.status])
        lines.append(Content.assemble(symbol, (phase.name, name), (took, "dim")))
    return lines


def progress_line(turn: LiveTurn) -> Content:
    """`turn 42  ✓ ✓ ▸ · · · · ·  planner`"""
    ribbon = ribbon_line(phases(turn.get("ribbon")))
    doing = one_line(turn.get("doing") or turn.get("status", ""))
    return Content.assemble(f"turn {turn['turn_id']}  ", ribbon, f"  {doing}")


def live_turn(turn: LiveTurn) -> Content:
    head = f"turn {turn['turn_id']}, {turn['status']}, session {turn.get('session_id', '?')}"
    parts = [
        Content.styled(one_line(head), "bold"),
        Content(clean(turn.get("question") or "")),
        Content("\n").join(ribbon_names(phases(turn.get("ribbon")))),
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
