"""Messages that are delivered twice, as a chat's webhook does that got no answer in time."""

from __future__ import annotations

import asyncio

from unified_flow.errors import RetrievalError
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.sessions.store import Sessions
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn


async def turn_that_answered(
    sessions: Sessions,
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
