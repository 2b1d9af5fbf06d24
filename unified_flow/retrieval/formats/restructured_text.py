"""reStructuredText: titles by their underlines and overlines, the text as a reader sees it."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator

from unified_flow.retrieval.formats.chunk import Heading, Section, outlined
from unified_flow.retrieval.formats.restructured_inline import plain_title
from unified_flow.retrieval.formats.restructured_markup import ADORNMENT, read

EXTENSIONS = frozenset({".rst", ".rest"})
_MARKS = frozenset(string.punctuation)

_EVIDENCE = re.compile(
    r"^[ \t]*\.\. (?:_[^:\n]+:|[\w:.+-]+::)|:[a-z][\w:-]{0,60}:`[^`\n]+`|``[^`\n]+``", re.MULTILINE
)


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
    found = list(headings(lines))
    if found:
        _blank_preamble(lines, found[0].start)
    yield from outlined(*read(lines, found))


def is_restructured(text: str) -> bool:
    """Whether plain text is written in it: two titles underlined to the letter, or one title that
    is overlined as well or stands with a directive, a role or a literal."""
    lines = text.split("\n")
    titles = [
        each
        for each in headings(lines)
        if _width(lines[each.end - 2].strip()) == len(lines[each.end - 1].rstrip())
    ]
    overlined = any(each.end - each.start > 2 for each in titles)
    return len(titles) > 1 or overlined or (bool(titles) and _EVIDENCE.search(text) is not None)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def headings(lines: list[str]) -> Iterator[Heading]:
    ruled = [number for number, line in enumerate(lines) if line[:1] in _MARKS and _adornment(line)]
    styles: list[tuple[str, bool]] = []  # in order of appearance, which is the order of depth
    after = 0
    for number in sorted({each - 1 for each in ruled if each} | set(ruled)):
        found = _title_at(lines, number) if number >= after else None
        if found is None:
            continue
        title, style, after = found
        if style not in styles:
            styles.append(style)
        yield Heading(plain_title(title), styles.index(style) + 1, number, after)


def _title_at(lines: list[str], at: int) -> tuple[str, tuple[str, bool], int] | None:
    """(title, (character, overlined), line after it) of a title that begins at `at`."""
    if at + 1 >= len(lines) or not lines[at].strip():
        return None
    after_text = at > 0 and bool(lines[at - 1].strip())
    over = _adornment(lines[at])
    if over:
        if at + 2 >= len(lines) or not lines[at + 1].strip() or after_text:
            return None
        title, under = lines[at + 1].strip(), lines[at + 2].rstrip()
        if under == over and _width(title) <= len(over) and not _adornment(lines[at + 1]):
            return title, (over[0], True), at + 3
        return None
    title, under = lines[at], _adornment(lines[at + 1])
    if not under or title[0].isspace() or after_text:
        return None
    # docutils warns of an underline that is too short, and takes it from four characters on.
    if len(under) < min(_width(title.rstrip()), 4):
        return None
    return title.strip(), (under[0], False), at + 2


def _adornment(line: str) -> str:
    bare = line.rstrip()
    return bare if ADORNMENT.match(bare) and bare not in ("..", "::") else ""


def _blank_preamble(lines: list[str], end: int) -> None:
    """What stands before the title and is nothing but explicit markup is about the page."""
    before = [line for line in lines[:end] if line.strip()]
    if all(line[0].isspace() or line.startswith(("..", ":")) for line in before):
        lines[:end] = [""] * end
