"""Where words and sentences begin and end, in scripts with spaces and in scripts without.

The lines of what is no running text (lists, tables, code, headings) are sentences of their own.
"""

# ruff: noqa: RUF001 -- the marks of many scripts are the matter here

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from unified_flow.lib.text.lexicon import any_language

# Scripts written without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
UNSPACED = (
    "\u0e00-\u0e3e\u0e40-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
# A number keeps its separators, a run of an unspaced script is one piece, and a word keeps
# its underscores; apostrophes and hyphens divide, so elision (l'eau) and genitives come apart.
WORD = re.compile(
    rf"\d+(?:[.,]\d+)+|[{UNSPACED}]+|(?:(?![{UNSPACED}])[\w\u0300-\u036f])+",
)
_ONE_OF_ASCII = re.compile(r"\d+(?:[.,]\d+)+|\w+")

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


def words(text: str) -> list[str]:
    """The words in order, unchanged; a run of Chinese, Japanese or Thai is one item."""
    # The narrow pattern is three times as fast and the same thing for plain ASCII.
    return (_ONE_OF_ASCII if text.isascii() else WORD).findall(text)


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
