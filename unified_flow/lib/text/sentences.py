"""Sentences of running text, and the lines of what is not: lists, tables, code, headings."""

# ruff: noqa: RUF001 -- the marks of many scripts are the matter here

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from unified_flow.lib.text.lexicon import any_language

# A line that starts something of its own: heading, list item, table row, quotation,
# directive, field or fence.
_OWN_LINE = re.compile(
    r"[ \t]*(?:#{1,6}[ \t]|[-*+•‣][ \t]|\(?(?:\d{1,3}|[a-zA-Z])[.)][ \t]"
    r"|\||>|\.\.[ \t]|:\w+:|```|~~~)"
)
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
# Heading underlines, rules and table borders hold no text.
_RULE = re.compile(r"[ \t]*[-=~^\"'`*+#_.:|<> \t]+\Z")
_END = re.compile(
    r"[.!?…]+(?:\[\d+\])*[\"'”’»)\]*_`]*(?:\[\d+\])*(?=\s|\Z)"
    r"|[。！？｡]+[”’」』）》\"']*"
)
_OPENING = re.compile(r"[\s\"'“‘«(\[*_`]*")
_LAST_WORD = re.compile(r"[^\s(\[“\"]*\Z")
_OF_GERMAN = frozenset({"z.b", "d.h", "u.a", "bzw"})  # which has no file of its own


@cache
def _abbreviations() -> frozenset[str]:
    return any_language().abbreviations | _OF_GERMAN


def _ends(text: str, start: int, stop: int, end: int) -> bool:
    """Whether the punctuation at `stop`..`end` closes the sentence begun at `start`."""
    mark = text[stop]
    if mark not in ".…":
        return True
    opening = _OPENING.match(text, end)
    following = text[opening.end() : opening.end() + 1] if opening else ""
    if following.islower():
        return False
    if mark == "…" or text[stop:end].startswith(".."):
        return True
    word = _LAST_WORD.search(text, max(start, stop - 40), stop)
    last = word.group().casefold() if word else ""
    if last in any_language().closing_abbreviations:
        return not following.isdigit()
    if last in _abbreviations():
        return False
    # An initial: "J. K. Rowling". A single letter that ends a sentence is rarer.
    return not (len(last) == 1 and last.isalpha() and text[stop - 1].isupper())


def _divided(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begun = start
    for match in _END.finditer(text, start, end):
        if match.start() >= begun and _ends(text, begun, match.start(), match.end()):
            yield begun, match.end()
            begun = match.end()
    if begun < end:
        yield begun, end


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Paragraphs, and single lines of anything else; True for what is to be divided."""
    start: int | None = None
    fenced = False
    position = 0
    for line in text.splitlines(keepends=True):
        begin, position = position, position + len(line)
        bare = line.rstrip()
        fence = _FENCE.match(line) is not None
        if fence or not bare or _RULE.match(bare):
            if start is not None:
                yield start, begin, True
            start = None
            fenced ^= fence
        elif fenced:
            yield begin, begin + len(bare), False
        elif _OWN_LINE.match(line):
            if start is not None:
                yield start, begin, True
            start = begin
            if bare.lstrip().startswith(("|", "#", "..", ":")):
                yield begin, begin + len(bare), False
                start = None
        elif start is None:
            start = begin
    if start is not None:
        yield start, position, True


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of sentences in order; `text[start:end]` has no white space at its ends.

    A heading, a table row and a line of fenced code are one each; rules and fences none.
    """
    found = []
    for start, end, running in _blocks(text):
        for begin, stop in _divided(text, start, end) if running else ((start, end),):
            piece = text[begin:stop]
            begin += len(piece) - len(piece.lstrip())
            stop = begin + len(piece.strip())
            if stop > begin:
                found.append((begin, stop))
    return found
