"""reStructuredText: titles by their underlines and overlines; metadata directives left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from unified_flow.retrieval.formats.chunk import Heading, Section, outlined

EXTENSIONS = frozenset({".rst", ".rest"})

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*\Z")
_EXPLICIT = re.compile(r"\.\.(?:\s+|\Z)(?P<rest>.*)")
_DIRECTIVE = re.compile(r"(?:\|[^|]+\|\s+)?(?P<name>[\w][\w:.+-]*)::(?:\s|\Z)")
# Directives with nothing to read in them.
_METADATA = frozenset(
    """
    contents toctree meta index highlight include raw image default-role role sectnum
    currentmodule module title target-notes header footer class
    """.split()  # noqa: SIM905
)
_ROLE = re.compile(r":[\w:.+-]+:`([^`]*)`")
_ANGLE = re.compile(r"\s*<[^>]*>\Z")


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
    headings = list(_headings(lines))
    _blank_metadata(lines)
    if headings:
        _blank_preamble(lines, headings[0].start)
    yield from outlined(lines, headings)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _headings(lines: list[str]) -> Iterator[Heading]:
    styles: list[tuple[str, bool]] = []  # in order of appearance, which is the order of depth
    number = 0
    while number < len(lines):
        found = _title_at(lines, number)
        if found is None:
            number += 1
            continue
        title, style, end = found
        if style not in styles:
            styles.append(style)
        yield Heading(_plain(title), styles.index(style) + 1, number, end)
        number = end


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
    return bare if _ADORNMENT.match(bare) and bare not in ("..", "::") else ""


def _blank_metadata(lines: list[str]) -> None:
    """Empties comments, targets and directives that hold nothing to read; the lines stay."""
    number = 0
    while number < len(lines):
        stripped = lines[number].lstrip()
        match = _EXPLICIT.match(stripped)
        if match is None or not _is_metadata(match["rest"]):
            number += 1
            continue
        indent = len(lines[number]) - len(stripped)
        lines[number] = ""
        number += 1
        while number < len(lines) and (
            not lines[number].strip() or len(lines[number]) - len(lines[number].lstrip()) > indent
        ):
            lines[number] = ""
            number += 1


def _is_metadata(rest: str) -> bool:
    if directive := _DIRECTIVE.match(rest):
        return directive["name"].casefold() in _METADATA
    return not re.match(r"\[[^\]]+\]\s", rest)  # a footnote or citation is content


def _blank_preamble(lines: list[str], end: int) -> None:
    """What stands before the title and is nothing but explicit markup is about the page."""
    before = [line for line in lines[:end] if line.strip()]
    if all(line[0].isspace() or line.startswith("..") for line in before):
        lines[:end] = [""] * end


def _plain(title: str) -> str:
    title = _ROLE.sub(lambda match: _ANGLE.sub("", match[1]), title)
    return re.sub(r"``|\*\*|(?<!\w)[*`|]|[*`|](?!\w)", "", title).strip()
