"""How Alembic runs the steps: over the connection that it is given, in one transaction."""

from __future__ import annotations

from alembic import context

from unified_flow.guardrails.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite can undo DDL once its driver leaves transactions to us (`sql_database.py`).
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
