"""A turn: its value, the events that move it, and its record on disk."""
