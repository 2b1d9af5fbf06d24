"""Everything about one entry, and the detail that shows it. Never markup: what failed may contain
any brackets.

The words and their order come from `interventions.view.describe`, as in `interventions show`, and
tracebacks from `interventions.admission.capture`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import compress, groupby
from textwrap import dedent

from textual import work
from textual.content import Content

from interventions.entry import Entry, is_open, short_id, turn_context
from interventions.errors import QueueError
from interventions.plaintext import clean, one_line
from interventions.view.description import Kind, Section, describe, failed_since
from interventions.view.ribbon import Phase, phases
from monitor.core.feeds import changes_since
from monitor.core.source import Background, Source
from monitor.widgets.text_view import Part, TextView, beginning
from monitor.widgets.turn_text import ribbon_line, ribbon_names, ribbon_summary

# A key that is held down moves the cursor only; files are read when it rests.
_REST_S = 0.1
_SEVERITY = {"critical": "bold $text-error", "high": "bold $text-warning"}
_FEW, _MANY = 6, 12
_MESSAGE = 400  # characters of a message while the detail is folded
_WARNING, _GOOD = "bold $text-warning", "$text-success"
# The style of a part's lines. Those of the other parts have names, or scores, that stand out.
_PROSE = {
    Kind.SUPERSEDED: _WARNING,
    Kind.REGRESSION: _WARNING,
    Kind.HINT: _GOOD,
    Kind.KNOWN_FIXES: _GOOD,
    **dict.fromkeys((Kind.WAITING, Kind.OTHERS, Kind.CHANGED, Kind.QUESTION, Kind.HISTORY), ""),
}
# `name: value`, `- name: value`; `  0.934  docs/page.md:44  80b31741`.
_NAME = re.compile(r"\w[\w .-]{0,39}:(?= |$)|^\s*[\d.?]+(?=  )")
# `  >    41 |     return x`: the arrow, the number with the bar, and the source.
_SOURCE = re.compile(r"\s*(>?)\s*(\d+) \| ?(.*)")
_PLACE = re.compile(r'\s*File "(.+)", line (\d+)(?:, in (.+))?')
_LIBRARY_FRAME = re.compile(r"    \S.* in \S+")


class DetailView(TextView):
    """One entry, with what is read about it once it rests here; or whatever else a row is."""

    def __init__(self, source: Source, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.entry: Entry | None = None
        self._source = source
        self._background: dict[str, Background] = {}  # of the entry that was read last
        self._changes: dict[int, tuple[str, ...]] = {}  # since a turn stopped, by its number
        self._read_of: object = None
        self._made_of: object = None

    def show(self, entry: Entry, others: Sequence[Entry], now: datetime) -> None:
        """`others` are open entries with the same fingerprint."""
        self.entry, self._others, self._now = entry, others, now
        if self._read_of != (entry["id"], entry["version"]):
            self._read_of = (entry["id"], entry["version"])
            self._read(entry)
        background, parts = self._background.get(entry["id"]), self.parts
        made_of = (entry, [one["id"] for one in others], background, now.replace(microsecond=0))
        if made_of != self._made_of:
            self._made_of, parts = made_of, entry_parts(entry, others, background, now)
        super().show_text(parts, key=entry["id"])

    def show_text(self, parts: Sequence[Part], *, key: str) -> None:
        self.entry = self._made_of = self._read_of = None
        super().show_text(parts, key=key)

    def on_focus(self) -> None:
        if self.entry is not None:
            self._read(self.entry)

    @work(exclusive=True)
    async def _read(self, entry: Entry) -> None:
        """First what the queue knows; then, for what has the keys, what has changed since its turn
        stopped: that takes longer, and loads the modules of tools that the turn was asked with."""
        await asyncio.sleep(_REST_S)
        source, turn_id = self._source, entry["turn_id"]
        try:
            background = await asyncio.to_thread(source.background, entry["id"])
        except QueueError:
            background = Background()  # the list says what is the matter with the queue
        self._show_behind(entry, background)
        if self.has_focus and turn_id and source.queue and is_open(entry):
            self._changes[turn_id] = await asyncio.to_thread(changes_since, source.home, turn_id)
            self._show_behind(entry, background)

    def _show_behind(self, entry: Entry, background: Background) -> None:
        changes = self._changes.get(entry["turn_id"], ())
        self._background = {entry["id"]: replace(background, changes=changes)}
        if self.entry is not None and self.entry["id"] == entry["id"]:
            self._made_of, self.parts = None, ()  # a comparison of texts sees no colours
            self.show(self.entry, self._others, self._now)


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
    parts = (_part(one, colours=background is not None) for one in sections.values())
    return [_head(entry, head, facts, steps), *parts]


def _part(section: Section, *, colours: bool) -> Part:
    if section.kind is Kind.TRACEBACK:
        return _traceback(section, colours=colours)
    style = _PROSE.get(section.kind)
    lines = [Content.styled(line, style or "") for line in section.lines]
    if style is None:
        stand_out = partial(Content.highlight_regex, style="$text-primary", maximum_highlights=1)
        lines = [stand_out(line, _NAME) for line in lines]
    return Part(section.title, lines, beginning(lines, _MANY if style is None else _FEW))


def _head(entry: Entry, head: Section, facts: str, steps: list[Phase]) -> Part:
    style = _SEVERITY.get(entry["severity"], "bold")
    what = (one_line(entry["error_type"]), style)
    title = Content.assemble(what, (f"  {short_id(entry['id'])}", "dim"))
    message = clean(entry["error_message"])
    lines, short = ([title, *map(Content, text)] for text in (message.split("\n"), _begun(message)))
    if again := failed_since(entry):
        lines.append(Content.styled(again, style))
        short += [Content.styled(line, style) for line in _begun(again)]
    line = raise_line(entry["traceback"] or "")
    both = [*([line] if line else []), Content("")]
    lines += both
    short += both
    if steps:
        short.append(Content.assemble(ribbon_line(steps), "  ", (ribbon_summary(steps), "dim")))
        lines += ribbon_names(steps)
    known = [Content(line) for line in head.lines]
    more = [Content.styled(line, "dim") for line in (head.title, facts)]
    return Part("", [*lines, *known, *more], [*short, *known])


def _begun(message: str) -> list[str]:
    """Its first lines: an error page of a server would push the hint out of sight."""
    begun = "\n".join(message[:_MESSAGE].split("\n")[:_FEW])
    left = len(message) - len(begun)
    return [*begun.split("\n"), *([f"▸ {left} more characters"] if left > 0 else [])]


def raise_line(traceback: str) -> Content | None:
    """`client.py:86  raise status_error(`: where the innermost own frame stands."""
    place, source = _PLACE.search(traceback), re.search(r"^\s*>\s*\d+ \| *(.*)", traceback, re.M)
    if place is None:
        return None
    file = clean(f"{place[1].rpartition('/')[2]}:{place[2]}")
    return Content.assemble((file, "$text-primary"), f"  {clean(source[1]) if source else ''}")


def _traceback(section: Section, *, colours: bool) -> Part:
    text = "\n".join(section.lines).rstrip("\n")
    lines, short = list[Content](), list[Content]()
    for is_source, group in groupby(text.split("\n"), lambda line: bool(_SOURCE.fullmatch(line))):
        found = tuple(group)
        shown = list(_source_lines(found, colours=colours) if is_source else map(_line, found))
        own = (is_source or not _LIBRARY_FRAME.fullmatch(line) for line in found)
        lines += shown
        short += compress(shown, own)
    return Part(section.title, lines, short)


def _line(line: str) -> Content:
    if place := _PLACE.fullmatch(line):
        where = (f"{place[1]}:{place[2]}", "$text-primary")
        return Content.assemble(where, f" in {place[3]}" if place[3] else "")
    if line and not line.startswith(" "):
        return Content.styled(line, "bold")
    return Content.styled(line, "dim")


def _source_lines(lines: tuple[str, ...], *, colours: bool) -> Iterator[Content]:
    """The lines of source, as far to the left as all of them can be."""
    found = [match.groups() for line in lines if (match := _SOURCE.fullmatch(line))]
    sources = tuple(dedent("\n".join(source for *_, source in found)).split("\n"))
    coloured = _coloured(sources) if colours else [Content(source) for source in sources]
    size = max(len(number) for _, number, _ in found)
    for (arrow, number, _), source in zip(found, coloured, strict=True):
        style = "bold $text-error" if arrow else "dim"
        yield Content.assemble((f"{arrow:1} {number:>{size}} | ", style), source)


@lru_cache(maxsize=64)
def _coloured(sources: tuple[str, ...]) -> list[Content]:
    from textual.highlight import highlight  # late: it loads a lexer

    lines = highlight("\n".join(sources), language="python").split("\n", allow_blank=True)
    # A lexer drops blank lines at either end.
    return lines if len(lines) == len(sources) else [Content(source) for source in sources]
