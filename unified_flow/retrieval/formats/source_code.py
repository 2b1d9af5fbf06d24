"""Source code: a section for each function and class, found by how definitions look.

One table of patterns for all languages, by indentation: a parser for each would find more
in a file that parses, and nothing in the one that is being written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import words_of
from unified_flow.retrieval.formats.chunk import Heading, outlined

_WORDS = words_of("source_code")
EXTENSIONS: frozenset[str] = _WORDS["extensions"]
_BEFORE = _WORDS["patterns"]["words"].replace("\n", "")
_PATTERNS = {
    name: re.compile(pattern.replace("\n", "").replace("WORDS", _BEFORE))
    for name, pattern in _WORDS["patterns"].items()
}


@dataclass(frozen=True)
class _Definition:
    name: str
    indent: int
    container: bool


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
    yield from outlined(lines, _headings(lines))


def _headings(lines: list[str]) -> Iterator[Heading]:
    """What is defined, without lines of its own; a heading without a title where it ends."""
    trail: list[_Definition] = []
    start = 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        found = _definition(line)
        indent = _indent(line)
        if found is not None:
            if any(not each.container and each.indent < found.indent for each in trail):
                continue  # a function inside a function is part of it
            start = max(start, first_line(lines, number, indent))
            trail = [*(each for each in trail if each.indent < found.indent), found]
            yield Heading(found.name, found.indent + 1, start, start)
        elif trail and indent <= trail[-1].indent and not _PATTERNS["closing"].match(line):
            start = number
            trail = [each for each in trail if each.indent < indent]
            yield Heading("", indent + 1, start, start)


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _definition(line: str) -> _Definition | None:
    if len(line) > 400 or _PATTERNS["statement"].match(line):
        return None
    if match := _PATTERNS["container"].match(line):
        if match["rest"].rstrip().endswith(";"):
            return None
        return _Definition(match["name"], _indent(line), True)
    for name in ("function", "assigned", "shell", "typed"):
        if match := _PATTERNS[name].match(line):
            return _Definition(match["name"], _indent(line), False)
    return None


def first_line(lines: list[str], number: int, indent: int) -> int:
    """Where the comments and decorators right above a definition begin."""
    above = _PATTERNS["above"]
    while number > 0 and above.match(lines[number - 1]) and _indent(lines[number - 1]) >= indent:
        number -= 1
    return number
