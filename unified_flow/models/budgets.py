"""What of a turn a prompt has room for: counted, shortened where that is honest, else refused.

A recipe's `budgets` are in tokens, by section. What is ranked or has an age may lose its end:
`passages` (what searches found, worst last) and `history` (oldest first); the best passage and the
newest turn stay whatever they take. Nothing else is cut: a section over its budget is an error
that says what to raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json

from unified_flow.errors import PromptTooLargeError
from unified_flow.models.tokens import estimate_tokens
from unified_flow.turns.results import Claim, PriorTurn, ToolResult
from unified_flow.turns.sections import PASSAGES, Sections

_HISTORY = "history"
_SHORTENED = frozenset({_HISTORY, PASSAGES})


@dataclass(frozen=True)
class Fitted:
    """The sections as a prompt may hold them; `left_out` counts passages and earlier turns that
    it does not, by the name of their budget."""

    sections: Sections
    left_out: Mapping[str, int]


def fitted(sections: Sections, budgets: Mapping[str, int], phase: str) -> Fitted:
    """Raises PromptTooLargeError for what is over its budget and cannot be shortened."""
    left_out: dict[str, int] = {}
    if budget := budgets.get(_HISTORY):
        kept = _newest(sections.history, budget)
        left_out[_HISTORY] = len(sections.history) - len(kept)
        sections = replace(sections, history=kept)
    if sections.evidence is not None:
        sections = replace(sections, coordinator=())  # for which it stands
    if budget := budgets.get(PASSAGES):
        distinct = _distinct(sections.coordinator)
        found = _best(distinct, budget)
        left_out[PASSAGES] = _passages(distinct) - _passages(found)
        sections = replace(sections, coordinator=found)
    for name, budget in budgets.items():
        if name not in _SHORTENED and (tokens := _tokens(getattr(sections, name))) > budget:
            raise PromptTooLargeError(
                f"section {name} takes about {tokens:,} tokens and may take {budget:,}",
                hint=f"raise budgets.{name} in the recipe of {phase}, or let less get into it"
                " (fewer tools allowed, a smaller file or page asked for)",
            )
    return Fitted(sections, {name: count for name, count in left_out.items() if count})


def _newest(history: tuple[PriorTurn, ...], budget: int) -> tuple[PriorTurn, ...]:
    """At least the last turn, whatever it takes: the question may lean on it."""
    kept: list[PriorTurn] = []
    for turn in reversed(history):
        budget -= _tokens(turn)
        if kept and budget < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def _best(results: tuple[ToolResult, ...], budget: int) -> tuple[ToolResult, ...]:
    """The best of each search, then the second best of each, and so on; the best one always."""
    kept: list[list[Claim]] = [[] for _ in results]
    for rank, (place, claim) in enumerate(_by_rank(results)):
        budget -= estimate_tokens(claim.claim) + estimate_tokens(claim.source)
        if rank and budget < 0:
            break
        kept[place].append(claim)
    return tuple(
        result.model_copy(update={"claims": own})
        for result, own in zip(results, kept, strict=True)
        if own or not result.claims
    )


def _distinct(results: tuple[ToolResult, ...]) -> tuple[ToolResult, ...]:
    """Each passage where it was found first. A result with claims is told by them alone."""
    seen: set[tuple[str, str]] = set()
    found: list[ToolResult] = []
    for result in results:
        new = [c for c in result.claims if (c.source, c.claim) not in seen]
        seen.update((claim.source, claim.claim) for claim in new)
        if new:
            found.append(result.model_copy(update={"claims": new, "result": None}))
        elif not result.claims:
            found.append(result)
    return tuple(found)


def _by_rank(results: tuple[ToolResult, ...]) -> Iterator[tuple[int, Claim]]:
    most = max((len(result.claims) for result in results), default=0)
    for rank in range(most):
        for place, result in enumerate(results):
            if rank < len(result.claims):
                yield place, result.claims[rank]


def _passages(results: tuple[ToolResult, ...]) -> int:
    return sum(len(result.claims) for result in results)


def _tokens(value: Any) -> int:
    return estimate_tokens(to_json(value).decode()) if value else 0
