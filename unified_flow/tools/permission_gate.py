"""The gate that every call passes: allowed already, allowed now by a person, or refused.

A tool that writes or uses the network runs only if allowed; `deny` wins over everything and holds
for every tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from unified_flow.errors import ToolDeniedError
from unified_flow.tools import Access, Tool
from unified_flow.tools.builtin.memory_tools import is_requested_by
from unified_flow.tools.grants import GrantStore, Scope

GATED = frozenset({Access.WRITES, Access.NETWORK})
Verdict = Literal["allowed", "denied", "ask"]


@dataclass(frozen=True)
class PermissionDecision:
    """`why` is a few words for a person; `ask` means that a person may still allow it."""

    verdict: Verdict
    why: str


PermissionReply = Scope | Literal["no"]
Asker = Callable[[Tool, Mapping[str, Any]], Awaitable[PermissionReply]]
"""Asks whoever sits at the terminal whether the tool may run with these arguments; raises EOFError
or KeyboardInterrupt as prompts do."""


class PermissionGate:
    """`asker` is None where nobody can be asked, which is a refusal; in a batch that is not
    `attended` nobody is waited for either, and what would be asked about is not offered."""

    attended = True

    def __init__(
        self,
        grants: GrantStore,
        *,
        allow: tuple[str, ...] = (),
        deny: tuple[str, ...] = (),
        asker: Asker | None = None,
        by: str = "somebody",
    ) -> None:
        self.grants = grants
        self.asker = asker
        self._allow = allow
        self._deny = deny
        self._by = by

    def decide(self, tool: Tool, session_id: str = "") -> PermissionDecision:
        """Raises ConfigError if what was granted cannot be read."""
        free = decide(tool.name, tool.access, allow=self._allow, deny=self._deny, granted={})
        if free.verdict != "ask":
            return free
        granted = self.grants.of_session(session_id)
        return decide(tool.name, tool.access, allow=self._allow, deny=self._deny, granted=granted)

    def denies(self, name: str) -> bool:
        """Whether nobody can allow it here."""
        return _matching(name, self._deny) is not None

    def withholds(self, tool: Tool, session_id: str) -> bool:
        """Whether nobody will allow it now. What is remembered, the question may ask for."""
        if self.attended or tool.personal:
            return False
        return self.decide(tool, session_id).verdict == "ask"

    async def admit(
        self,
        tool: Tool,
        args: Mapping[str, Any],
        *,
        session_id: str = "",
        granted: bool = False,
        question: str = "",
        persist: bool = True,
    ) -> str:
        """Why the call may run, in words for the journal. Nothing has run when this raises.

        `granted`: a person has allowed this very call; `question`: as it was typed; without
        `persist` nothing may be remembered or recalled, whoever allows it. Raises ToolDeniedError,
        and ConfigError if what was granted cannot be read.
        """
        if tool.personal and not persist:
            raise ToolDeniedError(
                f"{tool.name} may not run: nothing is kept of this turn",
                hint="ask within a session, of which things are kept",
            )
        decision = self.decide(tool, session_id)
        if decision.verdict == "allowed":
            return decision.why
        if decision.verdict == "ask" and is_requested_by(tool.name, args, question):
            return "the question asks for it in so many words"
        if decision.verdict == "ask" and granted:
            return "allowed once when the turn was resumed"
        if decision.verdict == "ask" and self.asker is not None:
            reply = await self.asker(tool, args)
            if reply != "no":
                self.remember(tool.name, reply, session_id=session_id)
                return f"allowed on the terminal: {reply}"
            raise _denied(tool, PermissionDecision("ask", "the person at the terminal said no"))
        raise _denied(tool, decision)

    def remember(self, tool: str, scope: Scope, *, session_id: str) -> None:
        """Raises ConfigError if it cannot be written. `once` leaves nothing behind."""
        if scope != "once":
            session = session_id if scope == "session" else None
            self.grants.add(tool, session_id=session, by=self._by)


def _denied(tool: Tool, decision: PermissionDecision) -> ToolDeniedError:
    if decision.verdict == "denied":
        return ToolDeniedError(
            f"{tool.name} may not run: {decision.why}",
            hint="the setting tools.deny in unified_flow.toml decides; nobody can allow it here",
        )
    return ToolDeniedError(
        f"{tool.name} may not run: {decision.why}",
        hint=(
            f'for every turn: --allow-tool {tool.name}, or allow = ["{tool.name}"] under [tools] in'
            " unified_flow.toml; for the turn that waits: resolve its intervention with --retry"
            " --grant once"
        ),
    )


def decide(
    name: str,
    access: frozenset[Access],
    *,
    allow: Iterable[str],
    deny: Iterable[str],
    granted: Mapping[str, str],
) -> PermissionDecision:
    """`allow` and `deny` are patterns such as `memory.*`; `granted` says how, by name."""
    if (pattern := _matching(name, deny)) is not None:
        return PermissionDecision("denied", f"tools.deny holds {pattern!r}")
    touched = access & GATED
    if not touched:
        return PermissionDecision("allowed", "only reads")
    if (pattern := _matching(name, allow)) is not None:
        return PermissionDecision("allowed", f"tools.allow holds {pattern!r}")
    if name in granted:
        return PermissionDecision("allowed", granted[name])
    return PermissionDecision("ask", f"it {describe_access(access)}, and nobody has allowed it")


def describe_access(access: frozenset[Access]) -> str:
    """As a verb."""
    if access >= GATED:
        return "writes and uses the network"
    if Access.NETWORK in access:
        return "uses the network"
    return "writes" if Access.WRITES in access else "only reads"


def _matching(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
