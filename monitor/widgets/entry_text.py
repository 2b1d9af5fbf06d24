"""Everything about one entry as the parts of the detail. Never markup: what failed may contain any
brackets.

The words and their order come from `interventions.view.describe`, as in `interventions show`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from textual.content import Content

from interventions.entry import Entry, latest_failure, short_id, turn_context
from interventions.plaintext import clean, one_line
from interventions.view.description import Kind, Section, describe
from interventions.view.ribbon import Phase, phases
from monitor.core.snapshot import Background
from monitor.widgets.part import Part, beginning, plain
from monitor.widgets.traceback_text import raise_line, traceback_parts
from monitor.widgets.turn_text import ribbon_line, ribbon_names, ribbon_summary

_SEVERITY = {"critical": "bold $text-error", "high": "bold $text-warning"}
_FEW, _MANY = 6, 12
_MESSAGE = 400  # characters of a message while the detail is folded
# `name: value`, `- name: value` in the lines of a part.
_NAME = re.compile(r"(\s*(?:- )?)([\w .-]{1,40}:)(?= |$)")
# `  0.934  docs/page.md:44  80b31741`: the score, the source and the passage.
_PASSAGE = re.compile(r"(\s*[\d.?]+)  (.*)(  \S+)")


def entry_parts(
    entry: Entry, others: Sequence[Entry], background: Background | None, now: datetime
) -> list[Part]:
    """`others` are open entries with the same fingerprint. Without a background, which follows once
    the cursor rests, source lines have no colours."""
    steps = phases(turn_context(entry).get("ribbon"))
    known = background or Background()
    head, *rest = describe(
        entry, list(known.past), list(known.journal), now, alike=others, changed=known.changes
    )
    sections = {section.kind: section for section in rest}
    # They are in the head here; the commands have a key.
    for kind in (Kind.PHASES, Kind.COMMANDS):
        sections.pop(kind, None)
    facts = sections.pop(Kind.ERROR).lines[-1]
    parts = [_head(entry, head, facts, steps)]
    for kind, section in sections.items():
        make = _PARTS.get(kind, _fields)
        if kind is Kind.TRACEBACK:
            make = partial(traceback_parts, colours=background is not None)
        parts.append(make(section))
    return parts


def _head(entry: Entry, head: Section, facts: str, steps: list[Phase]) -> Part:
    style = _SEVERITY.get(entry["severity"], "bold")
    what = (one_line(entry["error_type"]), style)
    title = Content.assemble(what, (f"  {short_id(entry['id'])}", "dim"))
    message = clean(entry["error_message"])
    lines, short = [title, *plain(message.split("\n"))], [title, *plain(_begun(message))]
    now = latest_failure(entry)
    if any(now.get(name) != entry.get(name) for name in ("error_type", "error_message")):
        again = one_line(f"now: {now.get('error_type')}: {now.get('error_message')}")
        lines.append(Content.styled(again, style))
        short += [Content.styled(line, style) for line in _begun(again)]
    line = raise_line(entry["traceback"] or "")
    both = [*([line] if line else []), Content("")]
    lines += both
    short += both
    if steps:
        short.append(Content.assemble(ribbon_line(steps), "  ", (ribbon_summary(steps), "dim")))
        lines += ribbon_names(steps)
    more = [Content.styled(line, "dim") for line in (head.title, facts)]
    return Part("", [*lines, *plain(head.lines), *more], [*short, *plain(head.lines)])


def _begun(message: str) -> list[str]:
    """Its first lines: an error page of a server would push the hint out of sight."""
    begun = "\n".join(message[:_MESSAGE].split("\n")[:_FEW])
    left = len(message) - len(begun)
    return [*begun.split("\n"), *([f"▸ {left} more characters"] if left > 0 else [])]


def _prose(section: Section, style: str = "") -> Part:
    lines = [Content.styled(line, style) for line in section.lines]
    return Part(section.title, lines, beginning(lines, _FEW))


def _evidence(section: Section) -> Part:
    lines, short = [], []
    for line in section.lines:
        found = _PASSAGE.fullmatch(line)
        if found is None:
            lines.append(Content.styled(line, "italic"))
            short.append(lines[-1])
            continue
        score, source, passage = found.groups()
        value = (f"{score.strip()} ", "$text-primary")
        lines.append(Content.assemble(value, source, (passage, "dim")))
        names = source.split("/")
        near = "/".join(["…", *names[-2:]]) if len(names) > 2 else source
        short.append(Content.assemble(value, near))
    return Part(section.title, lines, short[:_FEW])


def _fields(section: Section) -> Part:
    lines = []
    for line in section.lines:
        named = _NAME.match(line)
        if named is None:
            lines.append(Content(line))
            continue
        rest = line[named.end() :]
        lines.append(Content.assemble(named[1], (named[2], "$text-primary"), rest))
    return Part(section.title, lines, beginning(lines, _MANY))


_PARTS: dict[Kind, Callable[[Section], Part]] = {
    Kind.SUPERSEDED: partial(_prose, style="bold $text-warning"),
    Kind.REGRESSION: partial(_prose, style="bold $text-warning"),
    Kind.HINT: partial(_prose, style="$text-success"),
    Kind.KNOWN_FIXES: partial(_prose, style="$text-success"),
    Kind.EVIDENCE: _evidence,
    **dict.fromkeys(
        (Kind.RETRIED, Kind.WAITING, Kind.OTHERS, Kind.CHANGED, Kind.QUESTION, Kind.HISTORY),
        _prose,
    ),
}
