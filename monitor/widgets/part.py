"""A part of the detail: a heading and its lines, of which some are folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

_HEADING = "bold $text-accent"


@dataclass(frozen=True)
class Part:
    """`short` stands in place of `lines` while the detail is folded; None if all of it is shown."""

    title: str
    lines: Sequence[Content]
    short: Sequence[Content] | None = None

    def shown(self, *, folded: bool) -> list[Content]:
        """With its heading, which says how much is folded."""
        short = self.short if folded else None
        lines = self.lines if short is None else short
        if not self.title:
            return list(lines)
        left = len(self.lines) - len(lines)
        more = f"  ▸ {left} more line{'s' if left > 1 else ''}" if left > 0 else ""
        return [Content.assemble((self.title, _HEADING), (more, "dim")), *lines]


def beginning(lines: Sequence[Content], most: int) -> Sequence[Content] | None:
    """The first ones; None where nothing would be gained."""
    return lines[:most] if len(lines) > most + 1 else None


def text_of(parts: Sequence[Part]) -> str:
    """Whole, as it is copied."""
    whole = (part.shown(folded=False) for part in parts)
    return "\n\n".join("\n".join(line.plain for line in lines) for lines in whole)
