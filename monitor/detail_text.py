"""Everything about one entry as styled text. Never markup: what failed may contain any brackets.

What is said comes from `interventions.view.describe`, as in `interventions show`, laid out by the
kind of each section; the turn's ribbon, input and evidence are laid out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from textual.content import Content

from interventions.entry import Entry, short_id
from interventions.putting.occurrences import stands_at
from interventions.view.describe import Kind, Line, Role, Section, describe
from interventions.view.plaintext import clean, one_line
from interventions.view.ribbon import Phase, phases, summary
from monitor import ribbon
from monitor.core.snapshot import Background

# The turn is laid out here, and the keys are told at the bottom of the screen.
_TOLD_OTHERWISE = {Kind.PHASES, Kind.TURN, Kind.COMMANDS}
_AFTER_THE_TURN = {Kind.CONTEXT, Kind.SAMPLE, Kind.MERGED, Kind.HISTORY, Kind.ENVIRONMENT}
_HEAD = "bold $text-accent"
_SEVERITY = {"critical": "bold $text-error", "high": "bold $text-warning"}


def detail(entry: Entry, others: Sequence[Entry], background: Background, now: datetime) -> Content:
    """`others` are open entries with the same fingerprint."""
    turn = entry["context"].get("turn")
    turn = turn if isinstance(turn, dict) else {}
    told = describe(entry, list(background.past), list(background.journal), now)
    head, *rest = [section for section in told if section.kind not in _TOLD_OTHERWISE]
    return Content("\n\n").join(
        [
            _header(entry, head, phases(turn.get("ribbon"))),
            *([_alike(others)] if others else []),
            *(_section(section) for section in rest if section.kind not in _AFTER_THE_TURN),
            *_turn(turn),
            *(_section(section) for section in rest if section.kind in _AFTER_THE_TURN),
        ]
    )


def _header(entry: Entry, head: Section, steps: list[Phase]) -> Content:
    style = _SEVERITY.get(entry["severity"], "bold")
    lines = [Content.assemble((one_line(entry["error_type"]), style), ("  " + head.title, "dim"))]
    if (now := stands_at(entry)) is not entry:
        again = one_line(f"now: {now.get('error_type')}: {now.get('error_message')}")
        lines.append(Content.styled(again, style))
    if steps:
        lines.append(Content.assemble(ribbon.marks(steps), "  ", (summary(steps), "dim")))
    return Content("\n").join([*lines, *map(_head_line, head.lines)])


def _head_line(line: Line) -> Content:
    return Content.styled(line.text, "bold $text-warning" if line.role is Role.WARNING else "")


def _alike(others: Sequence[Entry]) -> Content:
    lines = [
        f"{short_id(one['id'])}  session {one_line(one['session_id'])}, turn {one['turn_id']}"
        for one in others
    ]
    return _titled(f"Alike, open too ({len(others)})", [Content(line) for line in lines])


def _section(section: Section) -> Content:
    told = "\n".join(section.texts).rstrip("\n").split("\n")
    if section.kind is Kind.TRACEBACK:
        return _titled(section.title, [_traceback_line(line) for line in told])
    return _titled(section.title, [Content(line) for line in told if line])


def _titled(title: str, lines: Sequence[Content]) -> Content:
    return Content("\n").join([Content.styled(title, _HEAD), *lines])


def _traceback_line(line: str) -> Content:
    bare = line.strip()
    if bare.startswith(">"):
        return Content.styled(line, "bold $text-error")
    if bare.startswith("File "):
        return Content.styled(line, "$text-primary")
    if line and not line.startswith(" "):
        return Content.styled(line, "bold")
    return Content.styled(line, "dim")


def _turn(turn: dict[str, Any]) -> list[Content]:
    """Its phases by name, the question, what the failed phase read, what was found, model."""
    parts = []
    if steps := phases(turn.get("ribbon")):
        parts.append(_titled("Phases", [ribbon.named(steps)]))
    if turn.get("question"):
        parts.append(_titled("Question", [Content(clean(str(turn["question"])))]))
    made_by = [
        Content(f"{name} {one_line(str(turn[name]))}")
        for name in ("model", "recipe", "recipe_digest")
        if turn.get(name)
    ]
    if made_by:
        parts.append(_titled("Model and recipe", made_by))
    evidence = turn.get("evidence")
    if isinstance(evidence, list) and evidence:
        parts.append(_titled("Evidence", list(_evidence(evidence))))
    known = {"ribbon", "question", "model", "recipe", "recipe_digest", "evidence", "input"}
    if turn.get("input"):
        parts.append(_titled("Input of the phase", _json(turn["input"])))
    other = {name: value for name, value in turn.items() if name not in known and value}
    if other:
        parts.append(_titled("Turn", _json(other)))
    return parts


def _evidence(found: list[Any]) -> Iterator[Content]:
    for item in found:
        if not isinstance(item, dict):
            yield Content(one_line(str(item)))
            continue
        query = one_line(str(item.get("query") or ""))
        yield Content.assemble(one_line(str(item.get("tool", "?"))), "  ", (query, "italic"))
        passages = item.get("passages")
        for passage in passages if isinstance(passages, list) else []:
            if isinstance(passage, dict):
                yield _passage(passage)
        if not passages:
            yield Content.styled("  nothing found", "dim")


def _passage(passage: dict[str, Any]) -> Content:
    score = passage.get("score")
    shown = f"{score:7.3f}" if isinstance(score, int | float) else f"{'?':>7}"
    chunk = one_line(str(passage.get("chunk_id", "?")))
    return Content.assemble(
        (shown, "bold"), f"  {chunk}  ", (one_line(str(passage.get("source", ""))), "dim")
    )


def _json(value: Any) -> list[Content]:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return [Content(clean(line)) for line in text.split("\n")]
