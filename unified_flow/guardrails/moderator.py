"""What moderates a text, and what it says: the seam for a classifier of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Moderated:
    """`categories`: those that are flagged, with scores 0..1, the greatest first."""

    flagged: bool
    categories: Mapping[str, float] = field(default_factory=dict)
    name: str = "OpenAI Moderation"
    rule: str = "openai_moderation"


@dataclass(frozen=True)
class ModerationFailed:
    """Nobody knows whether the text may be said; `error` is for whoever mends it."""

    reason: str
    error: Exception


@runtime_checkable
class Moderator(Protocol):
    """A local classifier needs no more than this. May raise anything: that is a failure."""

    async def moderate(self, text: str) -> Moderated: ...

    async def aclose(self) -> None: ...
