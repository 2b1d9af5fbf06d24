"""What a decision says, at which point it was made, and which of these count together."""

from __future__ import annotations

from typing import Literal

Choice = Literal["ignore", "respond", "escalate"]
Outcome = Literal[
    "passed",
    "pre_blocked",
    "post_blocked",
    "llm_error",
    "escalated",
    "check_failed",
    "switched_off",
]

BLOCKS: tuple[Outcome, ...] = ("pre_blocked", "post_blocked")
# A model, or a check: either way nobody could say whether and what to answer.
FAILURES: tuple[Outcome, ...] = ("llm_error", "check_failed")
