"""The blocks of a text as a reader sees them: paragraphs, list items, rows and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# A line that starts something of its own: a list item or quotation, which may go on below it ...
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣][ \t]|\(?(?:\d{1,3}|[a-zA-Z#])[.)][ \t]|>)")
# ... or a heading, table row, directive or field, which is one line. A role (":ref:`x`") is text.
_LINE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||\.\.[ \t]|:[\w-]+:(?!`))")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
# Heading underlines, rules and table borders hold no text.
_RULE = re.compile(r"[ \t]*[-=~^\"'`*+#_.:|<> \t]+\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """`text[start:end]` is whole lines; those of `code` include its fences."""

    start: int
    end: int
    kind: Literal["text", "item", "line", "code"]


def blocks(text: str) -> Iterator[Block]:
    """In order; blank lines and rules are none."""
    begun: tuple[int, Literal["text", "item"]] | None = None
    fence: int | None = None
    position = 0
    for line in text.splitlines(keepends=True):
        begin, position = position, position + len(line)
        bare = line.rstrip()
        if fence is not None:
            if _FENCE.match(line):
                yield Block(fence, begin + len(bare), "code")
                fence = None
            continue
        opens = _FENCE.match(line) is not None
        nothing = not opens and (not bare or bool(_RULE.match(bare)))
        alone = not opens and not nothing and bool(_LINE.match(line))
        ends = opens or nothing or alone
        if begun is not None and (ends or _ITEM.match(line)):
            yield Block(begun[0], begin, begun[1])
            begun = None
        if opens:
            fence = begin
        elif alone:
            yield Block(begin, begin + len(bare), "line")
        elif not ends and begun is None:
            begun = begin, "item" if _ITEM.match(line) else "text"
    if fence is not None:
        yield Block(fence, position, "code")
    elif begun is not None:
        yield Block(begun[0], position, begun[1])


def without_fences(lines: list[str]) -> list[str]:
    """The lines of a block of code."""
    inside = lines[1:] if _FENCE.match(lines[0]) else lines
    return inside[:-1] if inside and _FENCE.match(inside[-1]) else inside


def code_lines(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Spans of the lines between its fences that are not blank."""
    position = block.start
    for line in text[block.start : block.end].splitlines(keepends=True):
        if line.strip() and not _FENCE.match(line):
            yield position, position + len(line.rstrip())
        position += len(line)
