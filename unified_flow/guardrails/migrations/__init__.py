"""Alembic's scripts: `database.upgrade` runs them, no command is needed."""
