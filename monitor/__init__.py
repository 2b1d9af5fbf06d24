"""The terminal monitor over the intervention queue."""
