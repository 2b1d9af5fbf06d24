"""One row of `ai_decisions` for a message and an outcome; checks that failed, and AI that is
switched off, are outcomes of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BEFORE = ("passed", "pre_blocked", "post_blocked", "llm_error", "escalated")
AFTER = (*BEFORE, "check_failed", "switched_off")
BLOCKED = "outcome IN ('pre_blocked', 'post_blocked')"
FAILED = "matched_rule IN ('moderation_failed', 'rules_failed', 'guardrails_failed')"


def upgrade() -> None:
    _known(BEFORE, AFTER)
    op.execute(f"UPDATE ai_decisions SET outcome = 'check_failed' WHERE {BLOCKED} AND {FAILED}")
    op.execute(
        f"UPDATE ai_decisions SET outcome = 'switched_off' "
        f"WHERE {BLOCKED} AND matched_rule LIKE 'scope:%'"
    )
    op.execute(
        "DELETE FROM ai_decisions WHERE id NOT IN "
        "(SELECT MAX(id) FROM ai_decisions GROUP BY message_id, outcome)"
    )
    op.drop_index("ai_decisions_of_message", "ai_decisions")
    op.create_index("ai_decisions_once", "ai_decisions", ["message_id", "outcome"], unique=True)


def downgrade() -> None:
    op.drop_index("ai_decisions_once", "ai_decisions")
    op.create_index("ai_decisions_of_message", "ai_decisions", ["message_id"])
    op.execute(
        "UPDATE ai_decisions SET outcome = 'pre_blocked' "
        "WHERE outcome IN ('check_failed', 'switched_off')"
    )
    _known(AFTER, BEFORE)


def _known(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """SQLite changes no constraint: Alembic makes the table anew, and must be told of those that
    cannot be read back."""
    with op.batch_alter_table("ai_decisions", copy_from=_table(before)) as table:
        table.drop_constraint("outcome_known", type_="check")
        table.create_check_constraint("outcome_known", sa.column("outcome").in_(after))


def _table(outcomes: tuple[str, ...]) -> sa.Table:
    return sa.Table(
        "ai_decisions",
        sa.MetaData(),
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
        sa.CheckConstraint(sa.column("outcome").in_(outcomes), name="outcome_known"),
        sa.CheckConstraint("confidence >= 0 AND confidence <= 1", name="confidence_unit"),
        sa.Index("ai_decisions_of_user", "user_id", "created_at"),
        sa.Index("ai_decisions_by_time", "created_at"),
        sa.Index("ai_decisions_of_message", "message_id"),
    )
