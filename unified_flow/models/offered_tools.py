"""Which tools a prompt offers where there is no room for all: those that fit the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from unified_flow.lib.text import terms
from unified_flow.models import estimate_tokens
from unified_flow.models.schema import signature
from unified_flow.turns.sections import ToolDescription


def offered_tools(
    tools: Sequence[ToolDescription], question: str, budget: int
) -> tuple[tuple[ToolDescription, ...], int]:
    """Those that fit in `budget` tokens, best first chosen and in their own order, and how many
    are left out. Built-in ones stay, whatever they take."""
    sizes = {tool.name: estimate_tokens(signature(tool)) for tool in tools}
    if sum(sizes.values()) <= budget:
        return tuple(tools), 0
    own = [tool for tool in tools if tool.own]
    budget -= sum(sizes[tool.name] for tool in tools if not tool.own)
    said = {tool.name: _terms(tool) for tool in own}
    frequency = Counter(term for each in said.values() for term in each)
    asked = set(terms(question))

    def fit(tool: ToolDescription) -> float:
        return sum(log(1 + len(own) / frequency[term]) for term in asked & said[tool.name])

    chosen = set()
    for tool in sorted(own, key=fit, reverse=True):
        if sizes[tool.name] <= budget:
            budget -= sizes[tool.name]
            chosen.add(tool.name)
    offered = tuple(tool for tool in tools if tool.name in chosen or not tool.own)
    return offered, len(tools) - len(offered)


def _terms(tool: ToolDescription) -> set[str]:
    """Of its name, word by word, its description and the names of its arguments."""
    names = " ".join([tool.name, *tool.parameters.get("properties", {})])
    return set(terms(f"{names.replace('_', ' ').replace('.', ' ')} {tool.description}"))
