"""Source code: a section for each function and class, found by how definitions look.

One table of patterns for all languages, by indentation: a parser for each would find more
in a file that parses, and nothing in the one that is being written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from unified_flow.retrieval.formats.chunk import Section

EXTENSIONS = frozenset(
    """
    .pyx .js .jsx .mjs .cjs .ts .tsx .java .kt .kts .scala .groovy .go .rs .c .h .cc
    .cpp .cxx .hpp .hh .cs .swift .m .mm .rb .php .pl .pm .lua .r .jl .ex .exs .erl .hs .ml
    .fs .clj .dart .zig .nim .sh .bash .zsh .fish .ps1 .sql .vue .svelte .proto .msg .srv
    .action
    """.split()  # noqa: SIM905
)

_WORDS = (
    r"(?:export\s+|default\s+|declare\s+|public\s+|private\s+|protected\s+|internal\s+|static\s+"
    r"|final\s+|abstract\s+|sealed\s+|virtual\s+|override\s+|async\s+|unsafe\s+|inline\s+"
    r"|extern\s+(?:\"C\"\s+)?|pub(?:\([^)]*\))?\s+|const\s+(?=fn)|open\s+|data\s+(?=class)|suspend\s+)*"
)
_CONTAINER = re.compile(
    rf"(?P<indent>[ \t]*){_WORDS}(?:class|interface|trait|impl(?:<[^>]*>)?|struct|enum|union"
    r"|namespace|module|mod|object|protocol|extension|record|message|service|package(?=\s+\w+\s*\{))"
    r"\s+(?P<name>[\w:.$<>]*[\w>])(?P<rest>.*)"
)
_FUNCTION = re.compile(
    rf"(?P<indent>[ \t]*){_WORDS}(?:def|fn|func|function\*?|fun|sub|defp?|proc|macro_rules!)\s+"
    r"(?:\([^)]*\)\s*)?(?P<name>[\w.$!?]+)"
)
_ASSIGNED = re.compile(
    r"(?P<indent>[ \t]*)(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+(?P<name>[\w$]+)\s*"
    r"(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|\w+\s*=>)"
)
_SHELL = re.compile(r"(?P<indent>[ \t]*)(?P<name>[\w-]+)\s*\(\)\s*\{?\s*\Z")
# A C-like function or a method: a type, a name, parameters, and no semicolon.
_TYPED = re.compile(
    rf"(?P<indent>[ \t]*){_WORDS}(?:[\w:<>,\[\]?]+[\s*&]+)+(?P<name>[\w:~]+)\s*\([^;=]*\Z"
)
_STATEMENT = re.compile(
    r"[ \t]*(?:return|else|if|for|while|switch|case|new|throw|await|yield|in|do|delete|goto|using"
    r"|import|from|raise|assert|not|and|or|elif|with|match|SELECT|INSERT|CREATE)\b"
)
_ABOVE = re.compile(r"[ \t]*(?:@|#(?!\s*(?:include|define|if|endif|else))|//|/\*|\*|--|\[[\w(])")
_CLOSING = re.compile(r"[ \t]*(?:[})\]]|end\b|\"\"\"|'''|#|//|/\*|\*|--)")


@dataclass(frozen=True)
class _Definition:
    name: str
    indent: int
    container: bool


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
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
            begin = max(start, first_line(lines, number, indent))
            yield _section(trail, lines, start, begin)
            start = begin
            trail = [each for each in trail if each.indent < found.indent]
            trail.append(found)
        elif trail and indent <= trail[-1].indent and not _CLOSING.match(line):
            yield _section(trail, lines, start, number)
            start = number
            trail = [each for each in trail if each.indent < indent]
    yield _section(trail, lines, start, len(lines))


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _definition(line: str) -> _Definition | None:
    if len(line) > 400 or _STATEMENT.match(line):
        return None
    if match := _CONTAINER.match(line):
        if match["rest"].rstrip().endswith(";"):
            return None
        return _Definition(match["name"], _indent(line), True)
    for pattern in (_FUNCTION, _ASSIGNED, _SHELL, _TYPED):
        if match := pattern.match(line):
            return _Definition(match["name"], _indent(line), False)
    return None


def first_line(lines: list[str], number: int, indent: int) -> int:
    """Where the comments and decorators right above a definition begin."""
    while number > 0 and _ABOVE.match(lines[number - 1]) and _indent(lines[number - 1]) >= indent:
        number -= 1
    return number


def _section(trail: list[_Definition], lines: list[str], start: int, end: int) -> Section:
    return Section(tuple(each.name for each in trail), start + 1, lines[start:end])
