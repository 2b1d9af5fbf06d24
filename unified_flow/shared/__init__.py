"""Turns on many machines, on one PostgreSQL (architecture/shared-mode.md)."""
