"""What was said in a turn, as Messages (data-model.md, 1): a session keeps it, a trace shows it."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

from unified_flow.turns.passage import references_of
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.message import MAX_CONTENT_CHARS, Message


def user_message(turn: Turn) -> Message:
    assert turn.started_at is not None
    return Message(
        id=message_ids(turn)[0], role="user", content=turn.question, timestamp=turn.started_at
    )


def assistant_message(turn: Turn) -> Message:
    """The answer, as much of it as a Message may hold; its time is when the phases before `save`
    had made it."""
    assert turn.started_at is not None
    took_ms = sum(visit.duration_ms for visit in turn.visits if visit.phase != "save")
    return Message(
        id=message_ids(turn)[1],
        role="assistant",
        content=(turn.response or "")[:MAX_CONTENT_CHARS],
        timestamp=turn.started_at + timedelta(milliseconds=took_ms),
        sources=references_of(turn) or None,
    )


def message_ids(turn: Turn) -> tuple[uuid.UUID, uuid.UUID]:
    """Of the question and of the answer."""
    message = (turn.session_id, turn.request_id, turn.user_id, turn.question)
    return message_id(*message, "user"), message_id(*message, "assistant")


def message_id(session_id: str, request_id: str, user_id: str, text: str, role: str) -> uuid.UUID:
    """A UUID of version 4 that is the same for the same message of the same request."""
    seed = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([session_id, request_id, user_id, text, role]))
    return uuid.UUID(bytes=seed.bytes, version=4)
