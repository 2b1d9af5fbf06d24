"""The gate that every call passes: allowed already, allowed now by a person, or refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unified_flow.errors import ToolDeniedError
from unified_flow.tools import Access, Tool
from unified_flow.tools.builtin.remember import is_asked_for
from unified_flow.tools.permission.grants import GrantStore, Scope
from unified_flow.tools.permission.rules import Decision, decide


@dataclass(frozen=True)
class Wish:
    """What a person is asked to allow."""

    tool: str
    description: str
    args: Mapping[str, Any]
    access: frozenset[Access]


Reply = Scope | Literal["no"]
Asker = Callable[[Wish], Awaitable[Reply]]
"""Asks whoever sits at the terminal; raises EOFError or KeyboardInterrupt as prompts do."""


class Gate:
    """`asker` is None where nobody can be asked, which is a refusal."""

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

    def decide(self, tool: Tool, session_id: str = "") -> Decision:
        """Raises ConfigError if what was granted cannot be read."""
        free = decide(tool.name, tool.access, allow=self._allow, deny=self._deny, granted={})
        if free.verdict != "ask":
            return free
        granted = self.grants.of_session(session_id)
        return decide(tool.name, tool.access, allow=self._allow, deny=self._deny, granted=granted)

    async def admit(
        self,
        tool: Tool,
        args: Mapping[str, Any],
        *,
        session_id: str = "",
        granted: bool = False,
        question: str = "",
        kept: bool = True,
    ) -> str:
        """Why the call may run, in words for the journal. Nothing has run when this raises.

        `granted`: a person has allowed this very call; `question`: as it was typed; not `kept`:
        nothing may be remembered or recalled, whoever allows it. Raises ToolDeniedError, and
        ConfigError if what was granted cannot be read.
        """
        if tool.personal and not kept:
            raise ToolDeniedError(
                f"{tool.name} may not run: nothing is kept of this turn",
                hint="ask within a session, of which things are kept",
            )
        decision = self.decide(tool, session_id)
        if decision.verdict == "allowed":
            return decision.why
        if decision.verdict == "ask" and is_asked_for(tool.name, args, question):
            return "the question asks for it in so many words"
        if decision.verdict == "ask" and granted:
            return "allowed once when the turn was resumed"
        if decision.verdict == "ask" and self.asker is not None:
            reply = await self.asker(Wish(tool.name, tool.description, args, tool.access))
            if reply != "no":
                self.remember(tool.name, reply, session_id=session_id)
                return f"allowed on the terminal: {reply}"
            raise _denied(tool, Decision("ask", "the person at the terminal said no"))
        raise _denied(tool, decision)

    def remember(self, tool: str, scope: Scope, *, session_id: str) -> None:
        """Raises ConfigError if it cannot be written. `once` leaves nothing behind."""
        if scope != "once":
            session = session_id if scope == "session" else None
            self.grants.add(tool, session_id=session, by=self._by)


def _denied(tool: Tool, decision: Decision) -> ToolDeniedError:
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
