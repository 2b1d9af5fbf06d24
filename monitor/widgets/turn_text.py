"""A turn as styled text: the ribbon of its phases, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

from textual.content import Content

from interventions.plaintext import clean, fit, one_line
from interventions.retry.contract import LiveTurn
from interventions.secrets.redaction import redact_text
from interventions.times import from_text
from interventions.view.ribbon import Phase, Status, phases, took_text
from monitor.widgets.text_view import Part, beginning

_ANSWER_LINES, _SOURCE_LINES = 12, 6
_LABEL, _ROOM = 19, 20
_STATUS_STYLES: dict[Status, str] = {
    "completed": "$text-success",
    "failed": "bold $text-error",
    "running": "bold $text-warning",
    "interrupted": "bold $text-warning",
    "not_run": "dim",
}


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


def _steps(value: Any) -> list[Step]:
    """From `LiveTurn.steps`; what is none of them is left out."""
    found = []
    for item in value if isinstance(value, list) else []:
        for phase in phases([item]):
            with suppress(ValueError):
                began = from_text(str(item.get("started_at")))
                found.append(Step(str(item.get("kind")), phase, began, str(item.get("text") or "")))
    return found


def ribbon_line(ribbon: Iterable[Phase]) -> Content:
    """`✓ ✓ ✓ ✗ · · · ·`"""
    return Content(" ").join(
        Content.styled(phase.symbol, _STATUS_STYLES[phase.status]) for phase in ribbon
    )


def ribbon_summary(ribbon: Sequence[Phase]) -> str:
    """`planner failed after 12 ms, 4 never ran`"""
    words = []
    for phase in ribbon:
        if phase.status == "failed":
            after = f" after {took_text(phase.duration_ms)}" if phase.duration_ms else ""
            words.append(f"{phase.name} failed{after}")
    never = sum(phase.status == "not_run" for phase in ribbon)
    return ", ".join([*words, *([f"{never} never ran"] if never else [])])


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


def live_turn(turn: LiveTurn, now: datetime) -> list[Part]:
    """Its answer and sources first, once it has one; then its phases and calls over time, until now
    while it runs."""
    head = f"Turn {turn['turn_id']}, {turn['status']}, session {turn.get('session_id', '?')}"
    parts = [Part(one_line(head), _lines(turn.get("question")))]
    for title, text, most in (
        ("Answer", turn.get("answer"), _ANSWER_LINES),
        ("Sources", "\n".join(turn.get("sources", ())), _SOURCE_LINES),
    ):
        if lines := _lines(text):
            parts.append(Part(title, lines, beginning(lines, most)))
    if error := _lines(turn.get("error"), "$text-error"):
        parts.append(Part("Failed", error))
    if turn.get("intervention_id"):
        parts.append(Part("", _lines(f"intervention {turn['intervention_id']}")))
    if turn["status"] == "interrupted":
        parts.append(Part("", _lines(f"it goes on with: unified-flow resume {turn['turn_id']}")))
    return [*parts, _timeline(turn, now)]


def _lines(text: str | None, style: str = "") -> list[Content]:
    lines = clean(redact_text(text)).splitlines() if text else []
    return [Content.styled(line, style) for line in lines]


def _timeline(turn: LiveTurn, now: datetime) -> Part:
    """What models replied and tools were asked is folded away."""
    ribbon, found = phases(turn.get("ribbon")), _steps(turn.get("steps"))
    doing = _lines(f"now: {turn['doing']}") if turn.get("doing") else []
    if not found:
        return Part("Phases", [*ribbon_names(ribbon), *doing])
    lines, short = [], []
    # A person may have resumed it days later: each run has a scale of its own.
    runs = [0, *(n for n, step in enumerate(found) if step.kind == "run"), len(found)]
    for run in (found[first:end] for first, end in pairwise(runs) if end > first):
        start = min(step.began for step in run)
        whole = max(step.began + (step.took(now) or timedelta()) for step in run) - start
        for step in run:
            short.append(_step_line(step, start, whole, now))
            said = [Content.styled(f"    {line}", "dim") for line in _lines(step.text)]
            lines += [short[-1], *said]
    begun = {step.phase.name.partition(" ")[0] for step in found}
    never = ribbon_names(phase for phase in ribbon if phase.name not in begun)
    return Part("Timeline", [*lines, *never, *doing], [*short, *never, *doing])


def _step_line(step: Step, start: datetime, whole: timedelta, now: datetime) -> Content:
    """`✓ planner              ━━━━━           1.2 s`; calls are indented below their phase."""
    name, status = one_line(step.phase.name), step.phase.status
    if step.kind == "run":
        return Content.styled(name, "dim")
    is_phase, took = step.kind == "phase", step.took(now)
    at, length = 0, 1
    if whole:
        at = min(int((step.began - start) / whole * _ROOM), _ROOM - 1)
        length = min(max(ceil((took or timedelta()) / whole * _ROOM), 1), _ROOM - at)
    bar = " " * at + ("━" if is_phase else "─") * length
    time = took_text(took.total_seconds() * 1000) if took is not None else ""
    return Content.assemble(
        (f"{step.phase.symbol} ", _STATUS_STYLES[status]),
        (fit(name if is_phase else f"  {name}", _LABEL), "" if is_phase else "dim"),
        (bar.ljust(_ROOM), _STATUS_STYLES[status]),
        (f"{time:>10}", "dim"),
    )
