"""A traceback in colours, its library frames folded.

`interventions.admission.capture` writes what is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from textwrap import dedent

from textual.content import Content

from interventions.plaintext import clean
from interventions.view.description import Section
from monitor.widgets.part import Part

# `  >    41 |     return x`: the arrow, the number with the bar, and the source.
_SOURCE = re.compile(r"\s*(>?)\s*(\d+) \| ?(.*)")
_PLACE = re.compile(r'\s*File "(.+)", line (\d+)(?:, in (.+))?')
_LIBRARY_FRAME = re.compile(r"    \S.* in \S+")


def raise_line(traceback: str) -> Content | None:
    """`client.py:86  raise status_error(`: where the innermost own frame stands."""
    place, source = _PLACE.search(traceback), re.search(r"^\s*>\s*\d+ \| *(.*)", traceback, re.M)
    if place is None:
        return None
    file = clean(f"{place[1].rpartition('/')[2]}:{place[2]}")
    return Content.assemble((file, "$text-primary"), f"  {clean(source[1]) if source else ''}")


def traceback_parts(section: Section, *, colours: bool) -> Part:
    text = "\n".join(section.lines).rstrip("\n")
    lines, short = list[Content](), list[Content]()
    for is_source, group in groupby(text.split("\n"), lambda line: bool(_SOURCE.fullmatch(line))):
        if is_source:
            lines += (shown := list(_source_lines(tuple(group), colours=colours)))
            short += shown
            continue
        for line in group:
            lines.append(_line(line))
            if not _LIBRARY_FRAME.fullmatch(line):
                short.append(lines[-1])
    return Part(section.title, lines, short)


def _line(line: str) -> Content:
    if place := _PLACE.fullmatch(line):
        where = (f"{place[1]}:{place[2]}", "$text-primary")
        return Content.assemble(where, f" in {place[3]}" if place[3] else "")
    if line and not line.startswith(" "):
        return Content.styled(line, "bold")
    return Content.styled(line, "dim")


def _source_lines(lines: tuple[str, ...], *, colours: bool) -> Iterator[Content]:
    """As far to the left as they all can be."""
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
