"""What the guardrails did: blocks a day by rule, how often a model was asked again, silences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unified_flow.guardrails.outcomes import BLOCKS, FAILURES, Outcome

# What the user's own switches silence is blocked by rule too, though it alarms nobody.
BLOCKED: tuple[Outcome, ...] = (*BLOCKS, "switched_off")


@dataclass(frozen=True)
class Blocks:
    day: str
    rule: str
    count: int


@dataclass(frozen=True)
class GuardrailStats:
    """Over `days` days. `retry_rate` is the share of the messages that reached the model for which
    it was asked more than once; None where none reached it."""

    days: int
    blocks: list[Blocks]
    messages: int
    blocked: int
    escalated: int
    silent_failures: int
    retried: int
    retry_rate: float | None


def summed(rows: Iterable[Mapping[str, Any]], days: int) -> GuardrailStats:
    """Of the rows of `GuardrailStore.by_day`."""
    outcomes: Counter[str] = Counter()
    blocks: Counter[tuple[str, str]] = Counter()
    retried = 0
    for row in rows:
        outcomes[row["outcome"]] += row["count"]
        retried += int(row["retried"])
        if row["outcome"] in BLOCKED:
            blocks[row["day"], row["matched_rule"] or "?"] += row["count"]
    asked = outcomes["passed"] + outcomes["post_blocked"] + outcomes["llm_error"]
    return GuardrailStats(
        days=days,
        blocks=[Blocks(day, rule, count) for (day, rule), count in sorted(blocks.items())],
        messages=outcomes.total(),
        blocked=sum(outcomes[each] for each in BLOCKED),
        escalated=outcomes["escalated"],
        silent_failures=sum(outcomes[each] for each in FAILURES),
        retried=retried,
        retry_rate=retried / asked if asked else None,
    )
