"""What a service does beside answering: it says at once what it cannot keep, keeps it as soon as it
can, and lets go of what `[retention]` says.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from interventions.errors import QueueError
from interventions.plaintext import one_line
from interventions.recovery import recover
from interventions.secrets.redaction import redact_text
from interventions.storage import jsonl
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.logs import LineHandler
from unified_flow.errors import UnifiedFlowError
from unified_flow.resume.retention import prune

logger = logging.getLogger("unified_flow")

CATCH_UP_S = 5.0
PRUNE_S = 86_400.0
FIRST_PRUNE_S = 600.0  # so that one which is started every night lets go of something, too
QUIET_S = 10.0  # between two lines of one kind on stderr


class Alarms(LineHandler):
    """What the flow calls critical is something lost, or about to be: a line that no log took, a
    failure that the queue did not. It is counted, and a line on stderr at once; of one kind at most
    one in ten seconds, which says how many there were."""

    def __init__(self) -> None:
        super().__init__(2, partial(self.count, "stderr"), logging.CRITICAL)
        self.counts = Counter[str]()  # by the module that says so
        self._said: dict[str, tuple[float, int]] = {}  # when, and how many since

    def emit(self, record: logging.LogRecord) -> None:
        kind, now = record.module, monotonic()
        self.count(kind)
        at, unsaid = self._said.get(kind, (-QUIET_S, 0))
        if now - at < QUIET_S:
            self._said[kind] = (at, unsaid + 1)
            return
        self._said[kind] = (now, 0)
        more = f" ({unsaid} more like the last one)" if unsaid else ""
        self.lines.put(f"critical: {one_line(redact_text(record.getMessage(), 1000))}{more}")

    def count(self, source: str) -> None:
        self.counts[source] += 1


@dataclass
class Upkeep:
    """`waiting` counts lines that no log has taken yet: those of requests and of failures."""

    services: Services
    waiting: int = 0
    _prune_at: float = field(default_factory=lambda: monotonic() + FIRST_PRUNE_S)

    async def run(self) -> None:
        """Look after the stores until it is cancelled."""
        while True:
            await asyncio.sleep(CATCH_UP_S)
            await asyncio.to_thread(self.catch_up)
            if monotonic() >= self._prune_at:
                self._prune_at = monotonic() + PRUNE_S
                await asyncio.to_thread(self.prune)

    def catch_up(self) -> None:
        """Write what waits, and put failures that found no room, as `interventions drain` does."""
        self.waiting = jsonl.write_kept()
        queue = self.services.queue
        with suppress(QueueError, OSError):
            if not self.waiting and not queue.is_full():
                put = recover(queue, lost=False, via="service").put
                if put:
                    logger.warning("%d failures that had found no room are in the queue", len(put))

    def prune(self) -> None:
        """What fails is said: the disk fills up meanwhile."""
        try:
            prune(self.services.home)
        except (QueueError, UnifiedFlowError, OSError) as exc:
            logger.error("what [retention] does not keep could not be removed: %s", exc)
