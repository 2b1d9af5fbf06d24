"""The connections below HTTP: not too many, and none that waits for a request without end.

uvicorn bounds neither: it waits for the head of a request for as long as the client likes, and
whoever opens connections and says nothing takes the descriptors from everybody else.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

KEPT_BACK = 64  # descriptors for files, sockets of the loop and whoever else
PER_TURN = 4  # for its journal, its search, its model and a tool


@dataclass
class Connections:
    """`most` at once. `head_s` is how long the head of a request may take; `refused` makes the
    answer to what is no HTTP, of the client's address and the request whose body it is, if any."""

    most: int
    head_s: float
    refused: Callable[[str, Scope | None], bytes]
    open: int = 0
    waiting: dict[Bounded, None] = field(default_factory=dict)  # for a head, the oldest first

    def protocol(self, **options: Any) -> Bounded:
        """As uvicorn calls the class of a protocol."""
        return Bounded(self, **options)

    def came(self, one: Bounded) -> None:
        """Where there is no room, who has waited longest without asking anything makes it."""
        self.open += 1
        if self.open > self.most:
            next(iter(self.waiting), one).transport.abort()

    def went(self, one: Bounded) -> None:
        self.open -= 1
        self.waiting.pop(one, None)


class Bounded(H11Protocol):
    def __init__(self, bounds: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._bounds = bounds
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        self._bounds.came(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._asked()
        elif self._deadline is None:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # What was sent ahead may have been the beginning of the next request.
        if self._deadline is None and self.cycle is not None and self.cycle.response_complete:
            self._bounds.waiting[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._asked()
        self._bounds.went(self)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        client = str(self.client[0]) if self.client else "unknown"
        asked = self.cycle is not None and not self.cycle.response_complete
        broken = cast("Scope", self.cycle.scope) if asked else None
        self.transport.write(self._bounds.refused(client, broken))
        self.transport.close()

    def _wait(self) -> None:
        self._bounds.waiting[self] = None
        self._deadline = self.loop.call_later(self._bounds.head_s, self.transport.abort)

    def _asked(self) -> None:
        self._bounds.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def room_for(most: int, turns: int) -> int:
    """How many connections the descriptors of this process allow, at most `most`. It takes as many
    descriptors as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + turns * PER_TURN + KEPT_BACK
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    left = most if soft == resource.RLIM_INFINITY else soft - turns * PER_TURN - KEPT_BACK
    return max(8, min(most, left))
