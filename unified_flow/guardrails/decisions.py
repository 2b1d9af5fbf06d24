"""What is recorded about each message, and what the records add up to.

A block, an answer or a failure is one row of `ai_decisions`. Without SQLAlchemy, so that a flow
without rules does not load it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from interventions.secrets.redaction import redact
from interventions.times import to_text

Choice = Literal["ignore", "respond", "escalate"]
Outcome = Literal[
    "passed",
    "pre_blocked",
    "post_blocked",
    "llm_error",
    "escalated",
    "check_failed",
    "switched_off",
    "pre_shadowed",
    "post_shadowed",
]

BLOCKS: tuple[Outcome, ...] = ("pre_blocked", "post_blocked")
# A model, or a check: either way nothing could say whether and what to answer.
FAILURES: tuple[Outcome, ...] = ("llm_error", "check_failed")
# AI that a user has switched off is blocked by rule too, though it causes no alert.
BLOCKED: tuple[Outcome, ...] = (*BLOCKS, "switched_off")
# What shadow mode let pass: a row beside the one that says what became of the message.
SHADOWED: tuple[Outcome, ...] = ("pre_shadowed", "post_shadowed")


@dataclass(frozen=True)
class RecordedDecision:
    """A row of `ai_decisions`. `message_text` is cut at 500 characters when it is stored.

    `outcome` says at which point it was decided, `retry_count` how often a model was asked again.
    """

    user_id: str
    message_id: str
    decision: Choice
    confidence: float
    reason: str
    matched_rule: str | None
    message_text: str
    outcome: Outcome
    retry_count: int = 0
    snapshot_json: dict[str, Any] = field(default_factory=dict)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: int | None = None

    def as_shown(self) -> dict[str, Any]:
        """The decision as it leaves the program: redacted, its time as text."""
        return dict(redact(asdict(self) | {"created_at": to_text(self.created_at)}))


@dataclass(frozen=True)
class BlocksOfDay:
    day: str
    rule: str
    count: int


@dataclass(frozen=True)
class GuardrailStats:
    """Over `days` days. `retry_rate` is the share of the messages that reached the model for which
    it was asked more than once; None where none reached it. `shadowed`: messages and replies that
    shadow mode let pass."""

    days: int
    blocks: list[BlocksOfDay]
    messages: int
    blocked: int
    shadowed: int
    escalated: int
    silent_failures: int
    retried: int
    retry_rate: float | None


def stats_of(rows: Iterable[Mapping[str, Any]], days: int) -> GuardrailStats:
    """The statistics of rows of `GuardrailStore.by_day`."""
    outcomes: Counter[str] = Counter()
    blocks: Counter[tuple[str, str]] = Counter()
    retried = 0
    for row in rows:
        outcomes[row["outcome"]] += row["count"]
        retried += int(row["retried"])
        if row["outcome"] in BLOCKED:
            blocks[row["day"], row["matched_rule"] or "?"] += row["count"]
    shadowed = sum(outcomes[each] for each in SHADOWED)
    reached_model = outcomes["passed"] + outcomes["post_blocked"] + outcomes["llm_error"]
    return GuardrailStats(
        days=days,
        blocks=[BlocksOfDay(day, rule, count) for (day, rule), count in sorted(blocks.items())],
        messages=outcomes.total() - shadowed,
        blocked=sum(outcomes[each] for each in BLOCKED),
        shadowed=shadowed,
        escalated=outcomes["escalated"],
        silent_failures=sum(outcomes[each] for each in FAILURES),
        retried=retried,
        retry_rate=retried / reached_model if reached_model else None,
    )
