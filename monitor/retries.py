"""What a retry of many turns says: while it runs and when it is over. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from textual.content import Content

from interventions.retry.retry_many import Outcome
from interventions.retry.turns import LiveTurn
from interventions.secrets.redaction import redact_text
from interventions.view.plaintext import one_line
from interventions.view.ribbon import phases
from monitor import ribbon

_MOST_TOLD = 6


def live(turn: LiveTurn) -> Content:
    """`turn 42  ✓ ✓ ▸ · · · · ·  planner`"""
    marks = ribbon.marks(phases(turn.get("ribbon")))
    doing = one_line(turn.get("doing") or turn.get("status", ""))
    return Content.assemble(f"turn {turn['turn_id']}  ", marks, f"  {doing}")


def so_far(tried: Sequence[Outcome], total: int) -> str:
    """`3 of 12 turns: passed 2, failed 0, skipped 1`"""
    if not tried:
        return f"0 of {total} turns; one is tried first"
    return f"{len(tried)} of {total} turns: {tally(tried)}"


def tally(tried: Sequence[Outcome]) -> str:
    counts = Counter(one.came for one in tried)
    return ", ".join(f"{came} {counts[came]}" for came in ("passed", "failed", "skipped"))


def summary(tried: Sequence[Outcome]) -> list[str]:
    """The counts, then what did not pass: failures first, skipped for one reason together."""
    failed = [f"turn {one.turn_id} failed: {_told(one)}" for one in tried if one.came == "failed"]
    reasons = Counter(_told(one) for one in tried if one.came == "skipped")
    skipped = [f"{count} skipped: {reason}" for reason, count in reasons.items()]
    lines = [*failed, *skipped]
    more = [f"and {len(lines) - _MOST_TOLD} more"] if len(lines) > _MOST_TOLD else []
    return [tally(tried), *lines[:_MOST_TOLD], *more]


def _told(outcome: Outcome) -> str:
    return one_line(redact_text(outcome.what))[:300]
