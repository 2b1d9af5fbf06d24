"""The blocks of a text as a reader sees them: paragraphs, list items, rows and code.

Outside of `text`, whose lexicons take longer to load than the sandbox to convert a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# A line that starts something of its own: a list item or quotation, which may go on below it ...
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣][ \t]|\(?(?:\d{1,3}|[a-zA-Z#])[.)][ \t]|>)")
# ... or a heading, table row, directive or field, which is one line. A role (":ref:`x`") is text.
_LINE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||\.\.[ \t]|:[\w-]+:(?!`))")
_FENCE = re.compile(r"[ \t]*(?:`{3,}(?=[^`]*\Z)|~{3,})")
# Heading underlines, rules and table borders hold no text.
_RULE = re.compile(r"[ \t]*[-=~^\"'`*+#_.:|<> \t]+\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """`text[start:end]` is whole lines; those of `code` include its fences."""

    start: int
    end: int
    kind: Literal["text", "item", "line", "code"]


def fence_after(line: str, fence: str) -> str:
    """The fence that is open after the line, with its indentation; `fence` is the one before it,
    and "" is none. The rule is CommonMark's: a fence closes with the same mark, at least as long,
    that stands alone and less than four columns further in."""
    if not fence:
        found = _FENCE.match(line)
        return found.group() if found else ""
    mark, bare = fence.lstrip(), line.strip()
    further = len(line) - len(line.lstrip()) - len(fence) + len(mark)
    closes = len(bare) >= len(mark) and not bare.strip(mark[0]) and further < 4
    return "" if closes else fence


def blocks(text: str) -> Iterator[Block]:
    """The blocks of the text in order; blank lines and rules are none."""
    begun: tuple[int, Literal["text", "item"]] | None = None
    fence = ""
    fenced = 0  # where the open fence stands
    position = 0
    for line in text.splitlines(keepends=True):
        begin, position = position, position + len(line)
        bare = line.rstrip()
        before, fence = fence, fence_after(line, fence)
        if before:
            if not fence:
                yield Block(fenced, begin + len(bare), "code")
            continue
        opens = bool(fence)
        nothing = not opens and (not bare or bool(_RULE.match(bare)))
        alone = not opens and not nothing and bool(_LINE.match(line))
        ends = opens or nothing or alone
        if begun is not None and (ends or _ITEM.match(line)):
            yield Block(begun[0], begin, begun[1])
            begun = None
        if opens:
            fenced = begin
        elif alone:
            yield Block(begin, begin + len(bare), "line")
        elif not ends and begun is None:
            begun = begin, "item" if _ITEM.match(line) else "text"
    if fence:
        yield Block(fenced, position, "code")
    elif begun is not None:
        yield Block(begun[0], position, begun[1])


def without_fences(lines: list[str]) -> list[str]:
    """The lines of a block of code."""
    fence = fence_after(lines[0], "")
    inside = lines[1:] if fence else lines
    return inside[:-1] if fence and inside and not fence_after(inside[-1], fence) else inside


def code_lines(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Spans of the lines between its fences that are not blank."""
    position = block.start
    fence = ""
    for line in text[block.start : block.end].splitlines(keepends=True):
        before, fence = fence, fence_after(line, fence)
        if line.strip() and before == fence:
            yield position, position + len(line.rstrip())
        position += len(line)
