"""Where words and sentences begin and end, in scripts with spaces and in scripts without.

The lines of what is no running text (lists, tables, code, headings) are sentences of their own.
"""

# ruff: noqa: RUF001 -- the marks of many scripts are the matter here

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from unified_flow.lib.blocks import Block, blocks, code_lines
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

_END = re.compile(
    r"[.!?…]+(?:\[\d+\])*[\"'”’»)\]*_`]*(?:\[\d+\])*(?=\s|\Z)"
    r"|[。！？｡]+[”’」』）》\"']*"
)
_MARK = re.compile(r"[ \t]*\(?\w?\w?[\w#][.)]")
_OPENING = re.compile(r"[\s\"'“‘«(\[*_`]*")
_LAST_WORD = re.compile(r"[^\s(\[“\"]*\Z")


def words(text: str) -> list[str]:
    """The words in order, unchanged; a run of Chinese, Japanese or Thai is one item."""
    # The narrow pattern is three times as fast and the same thing for plain ASCII.
    return (_ONE_OF_ASCII if text.isascii() else WORD).findall(text)


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
    if last in any_language().abbreviations:
        return False
    # An initial: "J. K. Rowling". A single letter that ends a sentence is rarer.
    return not (len(last) == 1 and last.isalpha() and text[stop - 1].isupper())


def _divided(text: str, start: int, end: int, after: int) -> Iterator[tuple[int, int]]:
    """`after` is where an end is looked for: the mark of a list's item has none."""
    begun = start
    for match in _END.finditer(text, after, end):
        if match.start() >= begun and _ends(text, begun, match.start(), match.end()):
            yield begun, match.end()
            begun = match.end()
    if begun < end:
        yield begun, end


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of sentences in order; `text[start:end]` has no white space at its ends.

    A heading, a table row and a line of fenced code are one each; rules and fences none.
    """
    found = []
    for block in blocks(text):
        for begin, stop in _spans(text, block):
            piece = text[begin:stop]
            begin += len(piece) - len(piece.lstrip())
            stop = begin + len(piece.strip())
            if stop > begin:
                found.append((begin, stop))
    return found


def _spans(text: str, block: Block) -> Iterable[tuple[int, int]]:
    if block.kind == "code":
        return code_lines(text, block)
    if block.kind == "line":
        return ((block.start, block.end),)
    mark = _MARK.match(text, block.start) if block.kind == "item" else None
    return _divided(text, block.start, block.end, mark.end() if mark else block.start)
