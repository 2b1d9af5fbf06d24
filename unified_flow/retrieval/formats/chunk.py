"""The sections of a document, and the chunks they are cut into, which a search can return.

A chunk's `text` keeps the lines of the file, so that the line of anything in it is
`line` plus the newlines before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from unified_flow.lib.blocks import fence_after
from unified_flow.lib.sandbox import Section

TARGET = 1_600  # characters of a chunk that is put together from paragraphs
LARGEST = 2_400  # a paragraph up to this stays whole
LONGEST_TITLE = 200
_DEEPEST = 1_000  # level: deeper than any heading

_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.(?:\d+|x))+)(?!\w)")
_NUMBERED = re.compile(r"\W*\d[\d.x]*\W+[^\W\d]")
_SENTENCE_END = re.compile(r"[.!?…][\"')\]]*\s+|[。！？]")  # noqa: RUF001 -- Chinese marks


class Trail:
    """The headings over a place, as a reader goes on; level 1 is outermost."""

    def __init__(self, root: str | None = None) -> None:
        self._headings = [(0, root)] if root else []

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._headings if title)

    def enter(self, level: int, title: str) -> None:
        """Under a heading; one without a title still ends those before it."""
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title))


@dataclass(frozen=True)
class Heading:
    """`start` and `end` bound its lines (0-based, end exclusive); level 1 is outermost."""

    title: str
    level: int
    start: int
    end: int


def outlined(
    lines: Sequence[str],
    headings: Iterable[Heading],
    trail: Trail | None = None,
    *,
    of_file: bool = True,
    page: int | None = None,
) -> Iterator[Section]:
    """The sections between the headings, each with its trail, which goes on after a `page`;
    `of_file`: the lines are its own.

    A heading with nothing under it, not even another heading, is text of the section above: alone
    it would win searches, answering none. On a page of nothing else it is left out.
    """
    trail = trail or Trail()
    end, lead_start = 0, 0
    last = Heading("", 0 if page is None else _DEEPEST, len(lines), len(lines))
    for heading, after in pairwise((*headings, last, last)):
        if (
            heading is not last
            and after.level <= heading.level
            and not any(map(str.strip, lines[heading.end : after.start]))
        ):
            if after is last and not trail.titles and not "".join(lines[: heading.start]).strip():
                end = heading.end
            continue
        lead = lines[lead_start:end]
        own = lines[end : heading.start]
        yield Section(trail.titles, own, lead, page, line=end + 1 if of_file else 0)
        trail.enter(heading.level, heading.title)
        lead_start, end = heading.start, heading.end


@dataclass(frozen=True)
class Chunk:
    heading: str
    line: int
    end_line: int
    text: str
    page: int | None = None
    continues: bool = False  # the section of the chunk before it


def chunks(sections: Iterable[Section]) -> Iterator[Chunk]:
    """The chunks of the sections with text."""
    for section in sections:
        first, last = _written(section.lines)
        heading = " > ".join(title[:LONGEST_TITLE] for title in section.trail)
        pieces = _pieces(section.line + first, section.lines[first:last])
        for number, (line, text) in enumerate(pieces):
            end_line = line + text.count("\n")
            yield Chunk(heading, line, end_line, text, section.page, continues=number > 0)


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _written(lines: Sequence[str]) -> tuple[int, int]:
    """Where the lines begin and end that are not blank."""
    written = [number for number, line in enumerate(lines) if line.strip()]
    return (written[0], written[-1] + 1) if written else (0, 0)


def _pieces(line: int, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(line, text) of each chunk: whole paragraphs, up to TARGET characters together."""
    if _size(lines) <= LARGEST:
        if lines:
            yield line, "\n".join(lines)
        return
    held: list[str] = []
    size = 0
    for start, paragraph in _paragraphs(line, lines):
        more = _size(paragraph)
        if held and size + more > TARGET:
            yield from _emit(line, held)
            held, line, size = [], start, 0
        held += paragraph
        size += more
    yield from _emit(line, held)


def _paragraphs(line: int, lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, lines with the blank lines that follow), fenced code in one; what is too large, line
    by line."""
    found: list[str] = []
    size, fence = 0, ""
    for offset, text in enumerate([*lines, ""]):
        begins = found and not fence and text.strip() and not found[-1].strip()
        at_end = offset == len(lines)
        if begins or at_end or size > LARGEST:
            start = line + offset - len(found)
            if size > LARGEST:
                yield from ((start + i, [single]) for i, single in enumerate(found))
            elif found:
                yield start, found
            found, size = [], 0
        found.append(text)
        size += len(text) + 1
        fence = fence_after(text, fence)


def _emit(line: int, held: list[str]) -> Iterator[tuple[int, str]]:
    first, last = _written(held)
    if first == last:
        return
    if last - first == 1 and len(held[first]) > LARGEST:
        yield from ((line + first, part) for part in _cut(held[first]))
    else:
        yield line + first, "\n".join(held[first:last])


def _cut(text: str) -> Iterator[str]:
    """A line that is too long, cut after a sentence, else at a space, else anywhere."""
    while len(text) > LARGEST:
        ends = [m.end() for m in _SENTENCE_END.finditer(text, TARGET // 2, TARGET)]
        at = ends[-1] if ends else text.rfind(" ", TARGET // 2, TARGET) + 1
        at = at or TARGET
        yield text[:at].strip()
        text = text[at:]
    if text.strip():
        yield text.strip()


def version_in(heading: str, name: str) -> str:
    """The version that the headings over a chunk name, or "".

    "2.1 Installation" is a numbered heading, unless the file's name has the same digits.
    """
    for title in heading.split(" > "):
        found = _VERSION.search(title)
        if found and (
            not _NUMBERED.match(title) or found[1].replace(".", "") in name.replace(".", "")
        ):
            return found[1]
    return ""
