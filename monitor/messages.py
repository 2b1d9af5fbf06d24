"""What the workers tell the screens."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from monitor.core.feeds import Feed
from monitor.core.snapshot import Background, Snapshot


@dataclass
class QueueRead(Message):
    """The queue as it is now. A later one makes an earlier one that still waits needless."""

    snapshot: Snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, QueueRead)


@dataclass
class BackgroundRead(Message):
    intervention_id: str
    background: Background


@dataclass
class FeedRead(Message):
    feed: Feed

    def can_replace(self, message: Message) -> bool:
        # Not that of another tab: what was left last may still be read when this one is shown.
        return isinstance(message, FeedRead) and message.feed.tab == self.feed.tab
