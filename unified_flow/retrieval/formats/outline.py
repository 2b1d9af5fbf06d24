"""Headings found in a text, turned into sections with their trails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from unified_flow.retrieval.chunk import Section


@dataclass(frozen=True)
class Heading:
    """`start` and `end` bound its lines (0-based, end exclusive); level 1 is outermost."""

    title: str
    level: int
    start: int
    end: int


def outlined(
    lines: Sequence[str], headings: Iterable[Heading], root: str | None = None
) -> Iterator[Section]:
    trail: list[Heading] = [Heading(root, 0, 0, 0)] if root else []
    end, lead_start = 0, 0
    for heading in headings:
        yield _section(trail, lines, lead_start, end, heading.start)
        while trail and trail[-1].level >= heading.level:
            trail.pop()
        trail.append(heading)
        lead_start, end = heading.start, heading.end
    yield _section(trail, lines, lead_start, end, len(lines))


def _section(
    trail: list[Heading], lines: Sequence[str], lead_start: int, start: int, end: int
) -> Section:
    titles = tuple(each.title for each in trail if each.title)
    return Section(titles, start + 1, lines[start:end], lines[lead_start:start])
