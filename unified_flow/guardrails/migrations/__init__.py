"""Alembic's scripts: `sql_database.py` runs them, no command is needed."""
