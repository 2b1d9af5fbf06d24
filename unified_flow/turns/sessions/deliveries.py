"""Messages that are delivered twice, as a chat's webhook does that got no answer in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from unified_flow.errors import RetrievalError
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.sessions.store import SessionStore
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn


async def turn_that_answered(
    sessions: SessionStore,
    turns: TurnStore,
    *,
    session_id: str,
    request_id: str,
    user_id: str,
    question: str,
) -> Turn | None:
    """The turn that has answered it: the same session, request, user and text. None also if its
    journal is gone or damaged: the message is answered again then, and kept once."""
    message = (session_id, request_id, user_id, question)
    turn_id = await asyncio.to_thread(sessions.answered, *message)
    if turn_id is None:
        return None
    try:
        turn = await TurnArchive(turns).load(turn_id)
    except RetrievalError:
        return None
    return turn if turn is not None and turn.status == "answered" else None


class Deliveries:
    """Deliveries of one message to one process while it is being answered: each waits for the one
    before, and then finds its answer."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def one_by_one(self, *message: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(message, asyncio.Lock())
        async with lock:
            yield
