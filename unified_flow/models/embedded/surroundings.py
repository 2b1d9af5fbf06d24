"""The contiguous text around a sentence that a reader needs to use it.

A list is quoted with its lead-in and its other items, code with what introduces it, and a
paragraph with what follows as long as that is short. Nothing is cut inside a sentence or inside
code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from unified_flow.lib.text import sentences
from unified_flow.lib.text.blocks import Block, blocks

ENOUGH = 600  # characters, beyond which nothing is added for its own sake


@dataclass(frozen=True)
class Extent:
    start: int
    end: int


def around(text: str, start: int, end: int, *, opens: bool = False, most: int) -> Extent:
    """What to quote of `text` for the sentence at `start`..`end`. If it `opens` the answer, what
    stands before it is left out."""
    parts = _parts(text, most)
    if opens:
        parts = [each for each in _cut_at(text, parts, start) if each.end > start]
    first = next(n for n, each in enumerate(parts) if each.end > start)
    last = next((n for n, each in enumerate(parts) if each.end >= end), len(parts) - 1)
    while (step := _step(text, parts, first, last, most)) is not None:
        first, last = step
    return Extent(parts[first].start, parts[last].end)


@lru_cache(maxsize=512)
def _blocks(text: str) -> tuple[Block, ...]:
    return tuple(blocks(text))


def _parts(text: str, most: int) -> list[Block]:
    """The blocks; of one that is too long, its sentences."""
    found: list[Block] = []
    for block in _blocks(text):
        end = block.start + len(text[block.start : block.end].rstrip())
        if block.kind == "code" or end - block.start <= most:
            found.append(Block(block.start, end, block.kind))
        else:
            found += _sentences(text, block)
    return found


def _sentences(text: str, block: Block) -> list[Block]:
    spans = sentences(text[block.start : block.end])
    return [Block(block.start + begin, block.start + stop, block.kind) for begin, stop in spans]


def _cut_at(text: str, parts: Sequence[Block], start: int) -> list[Block]:
    """The parts, with the one that `start` lies in begun there."""
    return [
        Block(start, each.end, each.kind) if each.start < start < each.end else each
        for each in parts
    ]


def _step(
    text: str, parts: Sequence[Block], first: int, last: int, most: int
) -> tuple[int, int] | None:
    """One part more, before or after; None once it is enough."""
    after = last + 1 < len(parts)
    before = first > 0
    enough = min(ENOUGH, most)
    for wanted, step, limit in (
        (after and _introduces(text, parts[last], parts[last + 1]), (first, last + 1), most),
        (before and _introduces(text, parts[first - 1], parts[first]), (first - 1, last), most),
        (after, (first, last + 1), enough),
        (before, (first - 1, last), enough),
    ):
        if wanted and parts[step[1]].end - parts[step[0]].start <= limit:
            return step
    return None


def _introduces(text: str, one: Block, other: Block) -> bool:
    """Whether the second part is hard to read without the first, or the first without it."""
    if text[one.start : one.end].endswith((":", "\uff1a")):  # also in Chinese
        return True
    return other.kind != "text" and (one.kind == other.kind or other.kind == "code")
