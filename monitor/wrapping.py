"""Long lines broken so that what they are in stays readable: code keeps its column. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual.content import Content

_DEEPER = 4
# `  >   41 |     return x`: the arrow, the number and the bar of a source line.
_SOURCE = re.compile(r"(\s*>?\s*\d+ )\|\s*")
_INDENT = re.compile(r"\s*")


def wrapped(text: Content, width: int) -> list[Content]:
    """Lines of at most `width` cells. What goes on is indented further than where it began, and
    under the bar of a source line stands a bar."""
    lines: list[Content] = []
    for line in text.split("\n", allow_blank=True):
        lines += [line] if line.cell_length <= width else _broken(line, width)
    return lines


def _broken(line: Content, width: int) -> Iterator[Content]:
    line = line.expand_tabs()
    first = line.wrap(width)[0]
    margin = _margin(line.plain, width // 3)
    yield first
    rest = line[len(first.rstrip()) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    for piece in rest.wrap(max(width - len(margin), 1)):
        yield Content.assemble((margin, "dim"), piece)


def _margin(line: str, most: int) -> str:
    source = _SOURCE.match(line)
    if source:
        bar = " " * len(source[1]) + "|  "
        return bar.ljust(min(len(source[0]) + _DEEPER, most))
    indent = _INDENT.match(line)
    depth = len(indent[0]) if indent else 0
    return " " * min(depth + _DEEPER, most) if depth else ""
