"""Everything about one entry as styled text. Never markup: what failed may contain any brackets.

The words come from `interventions.view.describe`, as in `interventions show`, laid out by the kind
of each section.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from textual.content import Content

from interventions.entry import Entry, latest_failure, short_id
from interventions.plaintext import one_line
from interventions.view.description import Kind, Section, describe
from interventions.view.ribbon import Phase, phases, summary
from monitor.core.snapshot import Background
from monitor.widgets.turn_text import ribbon_line, ribbon_names, titled

# What one looks for first comes before the traceback; the ribbon is in the header, too.
_AFTER_THE_TRACEBACK = {
    *(Kind.PHASES, Kind.TURN, Kind.CONTEXT, Kind.SAMPLE),
    *(Kind.HISTORY, Kind.ENVIRONMENT),
}
_SEVERITY = {"critical": "bold $text-error", "high": "bold $text-warning"}


def entry_text(
    entry: Entry, others: Sequence[Entry], background: Background, now: datetime
) -> Content:
    """`others` are open entries with the same fingerprint."""
    turn = entry["context"].get("turn")
    steps = phases(turn.get("ribbon")) if isinstance(turn, dict) else []
    head, *rest = describe(entry, list(background.past), list(background.journal), now)
    rest.sort(key=lambda section: section.kind in _AFTER_THE_TRACEBACK)
    return Content("\n\n").join(
        [
            _header(entry, head, steps),
            *([_alike(others)] if others else []),
            # The keys are at the bottom of the screen.
            *(_section(each, steps) for each in rest if each.kind is not Kind.COMMANDS),
        ]
    )


def _header(entry: Entry, head: Section, steps: list[Phase]) -> Content:
    style = _SEVERITY.get(entry["severity"], "bold")
    lines = [Content.assemble((one_line(entry["error_type"]), style), ("  " + head.title, "dim"))]
    if (now := latest_failure(entry)) is not entry:
        again = one_line(f"now: {now.get('error_type')}: {now.get('error_message')}")
        lines.append(Content.styled(again, style))
    if steps:
        lines.append(Content.assemble(ribbon_line(steps), "  ", (summary(steps), "dim")))
    return Content("\n").join([*lines, *map(Content, head.lines)])


def _alike(others: Sequence[Entry]) -> Content:
    lines = [
        f"{short_id(one['id'])}  session {one_line(one['session_id'])}, turn {one['turn_id']}"
        for one in others
    ]
    return titled(f"Alike, open too ({len(others)})", [Content(line) for line in lines])


def _section(section: Section, steps: list[Phase]) -> Content:
    if section.kind is Kind.PHASES and steps:
        return titled(section.title, [ribbon_names(steps)])
    lines = "\n".join(section.lines).rstrip("\n").split("\n")
    if section.kind is Kind.SUPERSEDED:
        return titled(section.title, [Content.styled(line, "bold $text-warning") for line in lines])
    if section.kind is Kind.TRACEBACK:
        return titled(section.title, [_traceback_line(line) for line in lines])
    return titled(section.title, [Content(line) for line in lines if line])


def _traceback_line(line: str) -> Content:
    bare = line.strip()
    if bare.startswith(">"):
        return Content.styled(line, "bold $text-error")
    if bare.startswith("File "):
        return Content.styled(line, "$text-primary")
    if line and not line.startswith(" "):
        return Content.styled(line, "bold")
    return Content.styled(line, "dim")
