"""How much a search heeds what the conversation was about before the question.

A follow-up leaves out what both sides know, a change of subject must not be held to it. The search
for the question alone tells them apart: where it has a clear winner the question says enough, and
where nothing that it finds speaks of the conversation, the subject has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The share of the conversation that a passage on its subject holds at least.
_ON_SUBJECT = 0.08
# Of the conversation's weight in what a passage could reach: none is on all that was said.
_REACHED = 0.9
# Passages of the plain search that are looked at for the conversation.
LOOKED_AT = 8


def heed(scores: Sequence[float], shares: Sequence[float]) -> float:
    """0..1. `scores` are those of the search for the question alone, best first; `shares` say how
    much of the conversation its best passages hold."""
    if not scores:
        return 1.0
    second = scores[1] if len(scores) > 1 else 0.0
    lead = (scores[0] - second) / scores[0] if scores[0] > 0 else 0.0
    return (1 - lead) * min(1.0, max(shares, default=0.0) / _ON_SUBJECT)


def with_conversation(
    question: Mapping[str, float], conversation: Mapping[str, float], heeded: float
) -> tuple[dict[str, float], float]:
    """What each term weighs in a search for both, and what a passage on both weighs."""
    added = {t: weight * heeded for t, weight in conversation.items() if t not in question}
    return {**question, **added}, sum(question.values()) + _REACHED * sum(added.values())
