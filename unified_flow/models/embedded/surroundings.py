"""The contiguous text around a sentence that a reader needs to use it.

A list is quoted with its lead-in and its other items, code with the text around it, and a paragraph
with what follows as long as that is short. Nothing is cut inside a sentence or inside code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from unified_flow.lib.text import sentences
from unified_flow.lib.text.blocks import Block, blocks


def around(text: str, start: int, end: int, *, opens: bool = False, most: int) -> str:
    """What to quote of `text` for the sentence at `start`..`end`: up to `most` characters of what
    belongs together, and up to half of them of what only stands beside it. If the sentence `opens`
    the answer, what stands before it is left out."""
    parts = [
        Block(start, each.end, each.kind) if opens and each.start < start < each.end else each
        for each in _parts(text, most)
        if each.end > start or not opens
    ]
    first = next(n for n, each in enumerate(parts) if each.end > start)
    last = next((n for n, each in enumerate(parts) if each.end >= end), len(parts) - 1)
    while (step := _step(text, parts, first, last, most)) is not None:
        first, last = step
    while first and parts[first].kind == "code" and parts[first].end <= start:
        first += 1  # what introduces it did not fit
    chosen = parts[first : last + 1]
    chosen[-1:] = _without_introduction(text, chosen[-1], end)
    return "".join(_joined(text, chosen))


@lru_cache(maxsize=512)
def _blocks(text: str) -> tuple[Block, ...]:
    return tuple(blocks(text))


def _parts(text: str, most: int) -> Iterator[Block]:
    """The blocks; of one that is too long, its sentences."""
    for block in _blocks(text):
        end = block.start + len(text[block.start : block.end].rstrip())
        if block.kind == "code" or end - block.start <= most:
            yield Block(block.start, end, block.kind)
        else:
            yield from _sentences(text, block)


def _sentences(text: str, block: Block) -> list[Block]:
    spans = sentences(text[block.start : block.end])
    return [Block(block.start + begin, block.start + stop, block.kind) for begin, stop in spans]


def _step(
    text: str, parts: Sequence[Block], first: int, last: int, most: int
) -> tuple[int, int] | None:
    """One part more, before or after; None once it is enough."""
    after = last + 1 < len(parts)
    before = first > 0
    for wanted, step, limit in (
        (after and _belong(text, parts[last], parts[last + 1]), (first, last + 1), most),
        (before and _belong(text, parts[first - 1], parts[first]), (first - 1, last), most),
        (after, (first, last + 1), most // 2),
        (before, (first - 1, last), most // 2),
    ):
        if wanted and parts[step[1]].end - parts[step[0]].start <= limit:
            return step
    return None


def _belong(text: str, one: Block, other: Block) -> bool:
    """Whether the second part is hard to read without the first, or the first without it."""
    if _is_introduction(text, one) or "code" in (one.kind, other.kind):
        return True
    return other.kind != "text" and one.kind == other.kind


def _is_introduction(text: str, part: Block) -> bool:
    return text[part.start : part.end].endswith((":", "\uff1a"))  # also in Chinese


def _without_introduction(text: str, part: Block, end: int) -> list[Block]:
    """The part without a sentence at its end that introduces what did not fit."""
    if part.kind == "code" or not _is_introduction(text, part):
        return [part]
    kept = _sentences(text, part)[:-1]
    if kept and kept[-1].end >= end:
        return [Block(part.start, kept[-1].end, part.kind)]
    return [part] if part.start < end else []


def _joined(text: str, parts: Sequence[Block]) -> Iterator[str]:
    """The parts with at most one blank line between them: of many, most held markup. The rows of
    a table have none, because only its rules stood there."""
    for number, part in enumerate(parts):
        if number:
            before = parts[number - 1]
            gap = text[before.end : part.start]
            lines = gap.split("\n")
            apart = "\n" if _is_row(text, before) and _is_row(text, part) else "\n\n"
            yield gap if len(lines) < 3 else f"{apart}{lines[-1]}"
        yield text[part.start : part.end]


def _is_row(text: str, part: Block) -> bool:
    return text[part.start : part.end].lstrip().startswith("|")
