"""What a queue holds at one moment; apart from the storage, because readers need no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interventions.entry import Entry


@dataclass(frozen=True)
class QueueState:
    """All that is in the queue, in the order in which it was accepted.

    `dropped` counts by reason, `admitted` by kind. `extra` is what a newer version wrote beside
    them. Nothing in it may be changed in place.
    """

    entries: tuple[Entry, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    admitted: dict[str, int] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
