"""Rules as a person writes them in SQL: arrays on PostgreSQL, and defaults for what a row leaves
out. The outcomes of shadow mode."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

SWITCHES = ("ai_control_enabled", "ai_enabled_for_chats", "ai_enabled_for_comments")
WORDS = ("flagged_keywords", "flagged_phrases", "escalate_keywords", "escalate_phrases")
CHECKS = {
    "decision_known": "decision IN ('ignore', 'respond', 'escalate')",
    "outcome_known": "outcome IN ('passed', 'pre_blocked', 'post_blocked', 'llm_error',"
    " 'escalated', 'check_failed', 'switched_off', 'pre_shadowed', 'post_shadowed')",
    "confidence_unit": "confidence >= 0 AND confidence <= 1",
}
# The new type of a column may be computed by a function, by no subquery. What is no array is kept
# as one that cannot be read as rules either.
AS_ARRAY = """
    CREATE FUNCTION pg_temp.as_array(json) RETURNS text[] LANGUAGE sql AS $$
        SELECT CASE json_typeof($1)
            WHEN 'array' THEN ARRAY(SELECT json_array_elements_text($1))
            ELSE ARRAY[NULL::text]
        END
    $$
"""


def upgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    if on_postgres:
        op.execute(AS_ARRAY)
        for name in WORDS:
            changed = f"ALTER {name} TYPE text[] USING pg_temp.as_array({name})"
            op.execute(f"ALTER TABLE ai_rules {changed}")
    with op.batch_alter_table("ai_rules") as rules:
        for name in WORDS:
            rules.alter_column(name, server_default="{}" if on_postgres else "[]")
        for name in SWITCHES:
            rules.alter_column(name, server_default=sa.true())
        rules.alter_column("version", server_default="1")
        rules.alter_column("updated_at", server_default=sa.func.now())
    if on_postgres:
        op.drop_constraint("outcome_known", "ai_decisions", type_="check")
        op.create_check_constraint("outcome_known", "ai_decisions", CHECKS["outcome_known"])
        return
    # SQLite cannot change a check. Only some versions of SQLAlchemy read those of a table.
    decisions = sa.Table("ai_decisions", sa.MetaData(), autoload_with=op.get_bind())
    for constraint in list(decisions.constraints):
        if isinstance(constraint, sa.CheckConstraint):
            decisions.constraints.remove(constraint)
    for name, condition in CHECKS.items():
        decisions.append_constraint(sa.CheckConstraint(condition, name=name))
    with op.batch_alter_table("ai_decisions", recreate="always", copy_from=decisions):
        pass


def downgrade() -> None:
    raise NotImplementedError("rows of shadow mode have no place in the older tables")
