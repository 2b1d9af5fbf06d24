"""Two failures side by side, for whoever wants to know whether the fix did anything."""

from __future__ import annotations

from unified_flow.turns.turn import Failure


def difference(before: Failure | None, after: Failure | None) -> list[str]:
    """Lines that say how the failure now differs from the one before; empty without two."""
    if before is None or after is None:
        return []
    if _text(before) == _text(after) and before.phase == after.phase:
        return ["the same error as before"]
    return [f"before: {before.phase}: {_text(before)}", f"now:    {after.phase}: {_text(after)}"]


def _text(failure: Failure) -> str:
    tool = f" ({failure.tool})" if failure.tool else ""
    return f"{failure.error_type}{tool}: {failure.error_message}"
