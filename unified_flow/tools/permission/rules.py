"""May this tool run? A pure decision over what the configuration and people have said.

A tool that writes or uses the network runs only if allowed; `deny` wins over everything and holds
for every tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from unified_flow.tools import Access

GATED = frozenset({Access.WRITES, Access.NETWORK})
Verdict = Literal["allowed", "denied", "ask"]


@dataclass(frozen=True)
class Decision:
    """`why` is a few words for a person; `ask` means that a person may still allow it."""

    verdict: Verdict
    why: str


def decide(
    name: str,
    access: frozenset[Access],
    *,
    allow: Iterable[str],
    deny: Iterable[str],
    granted: Mapping[str, str],
) -> Decision:
    """`allow` and `deny` are patterns such as `memory.*`; `granted` says how, by name."""
    if (pattern := _matching(name, deny)) is not None:
        return Decision("denied", f"tools.deny holds {pattern!r}")
    touched = access & GATED
    if not touched:
        return Decision("allowed", "only reads")
    if (pattern := _matching(name, allow)) is not None:
        return Decision("allowed", f"tools.allow holds {pattern!r}")
    if name in granted:
        return Decision("allowed", granted[name])
    return Decision("ask", f"it {does(access)}, and nobody has allowed it")


def does(access: frozenset[Access]) -> str:
    """What a tool with this access does, as a verb."""
    if access >= GATED:
        return "writes and uses the network"
    if Access.NETWORK in access:
        return "uses the network"
    return "writes" if Access.WRITES in access else "only reads"


def _matching(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
