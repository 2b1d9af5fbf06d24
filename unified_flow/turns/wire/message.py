"""Message: what a user asked, or what the assistant said (data-model.md, 1)."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self
from uuid import UUID, uuid4

from pydantic import ConfigDict, Field, PlainSerializer, field_validator, model_validator

from interventions.times import to_text, utc_now
from unified_flow.turns.sources import references_of
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire import EXAMPLES, Wire

MAX_CONTENT_CHARS = 10_000

# ISO 8601 with Z, as everything that is written (system.md, "On disk").
Timestamp = Annotated[datetime, PlainSerializer(to_text, return_type=str, when_used="json")]


class Message(Wire):
    """`sources` are `chapter/section`, of an assistant's message that is grounded in some."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLES["Message"]})

    id: UUID = Field(default_factory=uuid4, description="a UUID of version 4")
    role: Literal["user", "assistant"]
    content: str = Field(
        max_length=MAX_CONTENT_CHARS, description="what was said; of a user never empty"
    )
    timestamp: Timestamp = Field(default_factory=utc_now, description="ISO 8601, UTC")
    sources: list[str] | None = Field(
        default=None, description="chapter/section, of an assistant's grounded message only"
    )

    @field_validator("id")
    @classmethod
    def _version_4(cls, value: UUID) -> UUID:
        if value.version != 4:
            raise ValueError("id must be a valid UUID v4")
        return value

    @field_validator("timestamp", mode="before")
    @classmethod
    def _iso(cls, value: object) -> object:
        # pydantic alone would take seconds since 1970, too.
        if not isinstance(value, datetime | str) or (isinstance(value, str) and value.isdecimal()):
            raise ValueError("timestamp must be in ISO 8601 format")
        return value

    @field_validator("timestamp")
    @classmethod
    def _utc(cls, value: datetime) -> datetime:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        if self.role == "user" and not self.content.strip():
            raise ValueError("content must not be empty for user messages")
        if self.sources is not None and self.role != "assistant":
            raise ValueError("sources are only present when the role is assistant")
        if self.sources is not None and not self.sources:
            raise ValueError("sources are only present when the answer is grounded")
        return self


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
    """The ids of the question and of the answer."""
    message = (turn.session_id, turn.request_id, turn.user_id, turn.question)
    return message_id(*message, "user"), message_id(*message, "assistant")


def message_id(session_id: str, request_id: str, user_id: str, text: str, role: str) -> uuid.UUID:
    """A UUID of version 4 that is the same for the same message of the same request."""
    seed = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([session_id, request_id, user_id, text, role]))
    return uuid.UUID(bytes=seed.bytes, version=4)
