"""The tables `ai_rules` and `ai_decisions`.

A step does not follow `schema.py`: it stays as it was when it made databases.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"  # what version 0.1 has
down_revision = None


def upgrade() -> None:
    op.create_table(
        "ai_rules",
        sa.Column("user_id", sa.String(200), primary_key=True),
        sa.Column("ai_control_enabled", sa.Boolean, nullable=False),
        sa.Column("ai_enabled_for_chats", sa.Boolean, nullable=False),
        sa.Column("ai_enabled_for_comments", sa.Boolean, nullable=False),
        sa.Column("flagged_keywords", sa.JSON, nullable=False),
        sa.Column("flagged_phrases", sa.JSON, nullable=False),
        sa.Column("escalate_keywords", sa.JSON, nullable=False),
        sa.Column("escalate_phrases", sa.JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "ai_decisions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("message_id", sa.String(200), nullable=False),
        sa.Column("decision", sa.String(20), nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("matched_rule", sa.Text),
        sa.Column("message_text", sa.String(500), nullable=False),
        sa.Column("snapshot_json", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.CheckConstraint("decision IN ('ignore', 'respond', 'escalate')", name="decision_known"),
        sa.CheckConstraint(
            "outcome IN ('passed', 'pre_blocked', 'post_blocked', 'llm_error', 'escalated',"
            " 'check_failed', 'switched_off')",
            name="outcome_known",
        ),
        sa.CheckConstraint("confidence >= 0 AND confidence <= 1", name="confidence_unit"),
    )
    op.create_index("ai_decisions_of_user", "ai_decisions", ["user_id", "created_at"])
    op.create_index("ai_decisions_by_time", "ai_decisions", ["created_at"])
    op.create_index("ai_decisions_once", "ai_decisions", ["message_id", "outcome"], unique=True)


def downgrade() -> None:
    op.drop_table("ai_decisions")
    op.drop_table("ai_rules")
