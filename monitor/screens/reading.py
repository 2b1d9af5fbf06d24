"""The workers of the triage screen: they read, and post what they read."""

from __future__ import annotations

import threading

from textual import work
from textual.worker import get_current_worker

from interventions.errors import QueueError
from monitor.core.feeds import reader_of
from monitor.core.snapshot import Background
from monitor.core.source import Clock, Source
from monitor.messages import BackgroundRead, FeedRead, QueueRead
from monitor.screens.acting import ActingScreen

_POLL_S = 0.1
# After a change, of which there may be twenty a second: each costs the keys a few milliseconds.
_REST_S = 0.2
_FEED_S = 0.4


class ReadingScreen(ActingScreen):
    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(source)
        self.clock = clock
        self._over = threading.Event()

    def on_unmount(self) -> None:
        self._over.set()

    @work(thread=True, exclusive=True, group="watch")
    def watch_queue(self) -> None:
        """Reads again whenever a file is another one than before."""
        worker = get_current_worker()
        last: object = None
        while not worker.is_cancelled and not self._over.is_set():
            mark = self.source.mark()
            another, last = mark != last, mark
            if another:
                self.post_message(QueueRead(self.source.read()))
            self._over.wait(_REST_S if another else _POLL_S)

    @work(thread=True, exclusive=True, group="feed")
    def follow(self, tab: str) -> None:
        """What a tab shows, read again and again while it is shown."""
        worker, read = get_current_worker(), reader_of(tab, self.source, self.clock)
        last = None
        while not worker.is_cancelled and not self._over.is_set():
            feed = read()
            if feed != last:
                last = feed
                self.post_message(FeedRead(feed))
            self._over.wait(_FEED_S)

    @work(thread=True, exclusive=True, group="background")
    def read_background(self, intervention_id: str) -> None:
        try:
            background = self.source.background(intervention_id)
        except QueueError:
            background = Background()  # the list says what is the matter with the queue
        self.post_message(BackgroundRead(intervention_id, background))
