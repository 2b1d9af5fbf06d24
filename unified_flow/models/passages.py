"""The passages that a language model is shown, numbered from 1: each once, best first.

The prompt shows them by these numbers and a draft cites by them, so both make the list here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unified_flow.config.tool_names import SEARCHES
from unified_flow.models import estimate_tokens
from unified_flow.turns.passage import Passage, passages_in
from unified_flow.turns.results import Claim, ToolResult


@dataclass(frozen=True)
class ShownPassage:
    """What a tool found. `passage` is the document's, if a search found it; `score` is 0..1."""

    number: int
    source: str
    text: str
    score: float
    passage: Passage | None = None

    @property
    def heading(self) -> str:
        return self.passage.heading if self.passage else ""


def shown_passages(
    results: Sequence[ToolResult], budget: int | None = None
) -> tuple[list[ShownPassage], int]:
    """The best of each result, then the second best of each, and so on, then the results that make
    no claims; and how many passages the budget, in tokens, has no room for. The best one stays
    whatever it takes."""
    shown: list[ShownPassage] = []
    seen: set[tuple[str, str]] = set()
    left_out = 0
    for claim, passage in _by_rank(results):
        key = (claim.source, claim.claim)
        if key in seen:
            continue
        seen.add(key)
        if budget is not None:
            budget -= estimate_tokens(claim.claim) + estimate_tokens(claim.source)
        if left_out or (budget is not None and budget < 0 and shown):
            left_out += 1
            continue
        number = len(shown) + 1
        shown.append(ShownPassage(number, claim.source, claim.claim, claim.confidence, passage))
    for result in results:
        if result.success and not result.claims and result.tool not in SEARCHES:
            text = json.dumps(result.result, ensure_ascii=False)
            shown.append(ShownPassage(len(shown) + 1, result.tool, text, 1.0))
    return shown, left_out


def _by_rank(results: Sequence[ToolResult]) -> Iterator[tuple[Claim, Passage | None]]:
    places = [{each.source(): each for each in passages_in(one.result)} for one in results]
    for rank in range(max((len(result.claims) for result in results), default=0)):
        for result, known in zip(results, places, strict=True):
            if rank < len(result.claims):
                claim = result.claims[rank]
                yield claim, known.get(claim.source)
