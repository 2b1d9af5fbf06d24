"""Headings found in a text, turned into sections with their trails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from unified_flow.retrieval.chunk import Section, Trail


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
    trail = Trail(root)
    end, lead_start = 0, 0
    for heading in headings:
        yield _section(trail, lines, lead_start, end, heading.start)
        trail.enter(heading.level, heading.title)
        lead_start, end = heading.start, heading.end
    yield _section(trail, lines, lead_start, end, len(lines))


def _section(trail: Trail, lines: Sequence[str], lead_start: int, start: int, end: int) -> Section:
    return Section(trail.titles, start + 1, lines[start:end], lines[lead_start:start])
