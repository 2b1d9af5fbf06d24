"""What was said before: kept by phase 7, read by phases 0 and 2, listed for people."""

from unified_flow.turns.sessions.session_file import SessionStore
from unified_flow.turns.sessions.store import Sessions

__all__ = ["SessionStore", "Sessions"]
