"""How Alembic runs the steps: over the connection that it is given, in one transaction."""

from __future__ import annotations

from alembic import context

# The tables of the guardrails may be in the same database, with a version of their own.
context.configure(
    connection=context.config.attributes["connection"], version_table="shared_version"
)
with context.begin_transaction():
    context.run_migrations()
