"""The workers of the triage screen: they read, and post what they read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from textual import work
from textual.message import Message
from textual.worker import get_current_worker

from interventions.entry import Entry, is_open
from interventions.errors import QueueError
from interventions.health import Window
from monitor.core.app_state import AppState
from monitor.core.feeds import Feed, changes_since, feed_reader, pulse_reader
from monitor.core.looked import Look
from monitor.core.snapshot import Background, Pulse, Snapshot
from monitor.screens.entry_actions import EntryScreen

_POLL_S = 0.1
# After a change, of which there may be twenty a second: each costs the keys a few milliseconds.
_REST_S = 0.2
_FEED_S = 0.4
_PULSE_S = 3.0
_CHANGES_AFTER_S = 0.1


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
        # Not that of another tab: the one that was left may still be read when this one is shown.
        return isinstance(message, FeedRead) and message.feed.tab == self.feed.tab


@dataclass
class PulseRead(Message):
    pulse: Pulse


class ReaderScreen(EntryScreen):
    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.window = Window.DAY
        self._unmounted = threading.Event()
        self._changes: dict[int, tuple[str, ...]] = {}  # by turn

    def on_unmount(self) -> None:
        self._unmounted.set()

    @work(thread=True, exclusive=True, group="queue")
    def read_queue(self) -> None:
        """The stamps of the files many times a second; the files themselves when one differs."""
        source = self.state.source
        self._follow(lambda: source.stamp(), lambda _: QueueRead(source.read()), _POLL_S, _REST_S)

    @work(thread=True, exclusive=True, group="pulse")
    def read_pulse(self, look: Look) -> None:
        self._follow(pulse_reader(self.state.source, look, self.state.clock), PulseRead, _PULSE_S)

    @work(thread=True, exclusive=True, group="feed")
    def read_feed(self, tab: str, turns: Sequence[int] = ()) -> None:
        """What a tab shows, again and again while it is shown."""
        state = self.state
        self._follow(
            feed_reader(tab, state.source, state.clock, self.window, turns), FeedRead, _FEED_S
        )

    def _follow(
        self,
        read: Callable[[], Any],
        message: Callable[[Any], Message],
        pause_s: float,
        rest_s: float = 0.0,
    ) -> None:
        """Posts what is read whenever it differs from the last; rests for longer after that."""
        worker, last = get_current_worker(), None
        while not (worker.is_cancelled or self._unmounted.is_set()):
            found = read()
            changed, last = found != last, found
            if changed:
                self.post_message(message(found))
            self._unmounted.wait(max(pause_s, rest_s) if changed else pause_s)

    @work(thread=True, exclusive=True, group="background")
    def read_background(self, entry: Entry, *, changes: bool) -> None:
        """First what the queue knows; then, if asked for, what has changed since its turn stopped:
        that takes longer, and loads the modules of tools that the turn was asked with."""
        source, worker, turn_id = self.state.source, get_current_worker(), entry["turn_id"]
        try:
            background = source.background(entry["id"])
        except QueueError:
            background = Background()  # the list says what is the matter with the queue
        known = self._changes.get(turn_id, ())
        self.post_message(BackgroundRead(entry["id"], replace(background, changes=known)))
        if not (changes and turn_id and source.queue and is_open(entry)):
            return
        self._unmounted.wait(_CHANGES_AFTER_S)
        if worker.is_cancelled or self._unmounted.is_set():
            return
        found = self._changes[turn_id] = changes_since(source.home, turn_id)
        self.post_message(BackgroundRead(entry["id"], replace(background, changes=found)))
