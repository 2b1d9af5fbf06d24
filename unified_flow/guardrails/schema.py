"""The two tables of silent-errors-and-guardrails.md, for SQLite and PostgreSQL alike.

Rules are arrays on PostgreSQL, JSON on SQLite; the steps in `migrations/` have defaults for what a
row that is written in SQL leaves out. Times are UTC. Imported late: SQLAlchemy is heavy.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from unified_flow.guardrails.decisions import Choice, Outcome

metadata = sa.MetaData()
MESSAGE_CHARS = 500
DECISIONS = get_args(Choice)
OUTCOMES = get_args(Outcome)
WORDS = sa.JSON().with_variant(postgresql.ARRAY(sa.Text), "postgresql")


class UtcTime(sa.TypeDecorator[datetime]):
    """A time with its zone; SQLite stores none, so that UTC is stored there."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


ai_rules = sa.Table(
    "ai_rules",
    metadata,
    sa.Column("user_id", sa.String(200), primary_key=True),
    sa.Column("ai_control_enabled", sa.Boolean, nullable=False),
    sa.Column("ai_enabled_for_chats", sa.Boolean, nullable=False),
    sa.Column("ai_enabled_for_comments", sa.Boolean, nullable=False),
    sa.Column("flagged_keywords", WORDS, nullable=False),
    sa.Column("flagged_phrases", WORDS, nullable=False),
    sa.Column("escalate_keywords", WORDS, nullable=False),
    sa.Column("escalate_phrases", WORDS, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
)

ai_decisions = sa.Table(
    "ai_decisions",
    metadata,
    # SQLite numbers only a column of exactly this type by itself.
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("user_id", sa.String(200), nullable=False),
    sa.Column("message_id", sa.String(200), nullable=False),
    sa.Column("decision", sa.String(20), nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("matched_rule", sa.Text),
    sa.Column("message_text", sa.String(MESSAGE_CHARS), nullable=False),
    sa.Column("snapshot_json", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("retry_count", sa.Integer, nullable=False),
    sa.CheckConstraint(sa.column("decision").in_(DECISIONS), name="decision_known"),
    sa.CheckConstraint(sa.column("outcome").in_(OUTCOMES), name="outcome_known"),
    sa.CheckConstraint("confidence >= 0 AND confidence <= 1", name="confidence_unit"),
    sa.Index("ai_decisions_of_user", "user_id", "created_at"),
    sa.Index("ai_decisions_by_time", "created_at"),
    # A turn that goes on may decide the same once more.
    sa.Index("ai_decisions_once", "message_id", "outcome", unique=True),
)
