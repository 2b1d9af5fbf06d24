"""The gate that every call passes: allowed already, allowed now by a person, or refused.

A tool that writes or uses the network runs only if allowed; `deny` wins over everything and holds
for every tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal

from unified_flow.config.tool_names import HUMAN_ASK, INTERNET_RESEARCH
from unified_flow.errors import ToolDeniedError
from unified_flow.lib.text.urls import addresses_of, host_of, without_fragment
from unified_flow.tools import Access, Tool
from unified_flow.tools.builtin.memory_tools import is_requested_by
from unified_flow.tools.grants import Grant, GrantStore, Scope

GATED = frozenset({Access.WRITES, Access.NETWORK})
NOT_ALLOWED = "not allowed by the person"
Verdict = Literal["allowed", "denied", "ask"]


@dataclass(frozen=True)
class PermissionDecision:
    """`why` is a few words for a person; `ask` means that a person may still allow it."""

    verdict: Verdict
    why: str


PermissionReply = Scope | Literal["no"]
Asker = Callable[[Tool, Mapping[str, Any], str], Awaitable[PermissionReply]]
"""Asks the person at the terminal whether the tool may run with these arguments, and says why it
asks; raises EOFError or KeyboardInterrupt as prompts do."""


@dataclass
class PermissionGate:
    """`hosts` are those of which a model may name any address. `asker` is None where nobody can be
    asked, which is a refusal; where it is not `attended` (a batch, a service) nobody is waited for
    either, and what would be asked about is not offered."""

    grants: GrantStore
    _: KW_ONLY
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hosts: Collection[str] = ()
    asker: Asker | None = None
    by: str = "somebody"
    attended: bool = True

    def decide(
        self,
        tool: Tool,
        session_id: str = "",
        args: Mapping[str, Any] | None = None,
        urls: Collection[str] = (),
        grants: Sequence[Grant] | None = None,
    ) -> PermissionDecision:
        """Without `args`: whether a call of it may run at all. `urls` as in `Caller`; `grants` if
        they were read already.

        Raises ConfigError if what was granted cannot be read.
        """
        free = self._by_settings(tool)
        strange = self._unknown_url(tool, args or {}, urls)
        if free.verdict == "denied" or (free.verdict == "allowed" and strange is None):
            return free
        known = self.grants.all() if grants is None else grants
        given = [g for g in known if g.tool == tool.name and g.session_id in (None, session_id)]
        valid = [grant for grant in given if grant.definition == tool.definition]
        hosts = hosts_named(tool, args or {})
        seen = {host for each in valid for host in each.hosts}
        # A call that names no host could go anywhere, so a grant for hosts does not cover it.
        covered = hosts <= seen if hosts else any(not grant.hosts for grant in valid)
        if valid and (args is None or covered):
            return PermissionDecision("allowed", str(valid[-1]))
        if strange is not None:
            why = f"{strange} stands neither in the question nor on a page that this turn has read"
            return PermissionDecision("ask", why)
        if given:
            now = "for another host" if valid else "as it was defined then"
            return PermissionDecision("ask", f"it was {given[-1]}, {now}")
        return free

    def _by_settings(self, tool: Tool) -> PermissionDecision:
        """The decision of the settings, whatever was granted."""
        return decide(tool.name, tool.access, allow=self.allow, deny=self.deny)

    def _unknown_url(
        self, tool: Tool, args: Mapping[str, Any], urls: Collection[str]
    ) -> str | None:
        """An address to fetch that the model may have made up, with what it has read in it."""
        if tool.name != INTERNET_RESEARCH:
            return None
        unknown = (url for url in args.get("urls", ()) if without_fragment(url) not in urls)
        return next((url for url in unknown if host_of(url) not in self.hosts), None)

    def withheld(self, tools: Iterable[Tool], session_id: str) -> set[str]:
        """The names of the tools that the settings deny and, where nobody is there to ask, of those
        that would have to be asked for. Tools of memory stay: the question itself may ask for
        them."""
        verdicts = [(tool, self._by_settings(tool).verdict) for tool in tools]
        denied = {tool.name for tool, verdict in verdicts if verdict == "denied"}
        if self.attended:
            return denied
        asked = [tool for tool, verdict in verdicts if verdict == "ask" and not tool.personal]
        grants = self.grants.all() if asked else ()  # reading them takes longer than the rest
        ungranted = {
            t.name for t in asked if self.decide(t, session_id, grants=grants).verdict == "ask"
        }
        return denied | ungranted | {HUMAN_ASK}

    async def admit(
        self,
        tool: Tool,
        args: Mapping[str, Any],
        *,
        session_id: str = "",
        granted: Scope | None = None,
        question: str = "",
        persist: bool = True,
        urls: Collection[str] = (),
    ) -> PermissionDecision:
        """`allowed` and by what, or `denied` by the person at the terminal. `granted` is how this
        very call was allowed when the turn was resumed; `question` may itself ask for the call;
        `persist` False: nothing of the turn is kept, so neither are facts about the user.

        Raises ToolDeniedError if nobody can be asked, whatever the asker raises, and ConfigError
        if what was granted cannot be read.
        """
        if tool.personal and not persist:
            raise ToolDeniedError(
                f"{tool.name} may not run: nothing is kept of this turn",
                hint="ask within a session, of which things are kept",
            )
        decision = self.decide(tool, session_id, args, urls)
        if decision.verdict == "allowed":
            return decision
        if decision.verdict == "ask" and is_requested_by(tool.name, args, question):
            return PermissionDecision("allowed", "the question asks for it in so many words")
        if decision.verdict == "ask" and granted is not None:
            self._remember(tool, args, granted, session_id)
            return PermissionDecision("allowed", f"allowed when the turn was resumed: {granted}")
        if decision.verdict == "denied" or self.asker is None:
            raise _denied(tool, decision)
        reply = await self.asker(tool, args, decision.why)
        if reply == "no":
            return PermissionDecision("denied", NOT_ALLOWED)
        self._remember(tool, args, reply, session_id)
        return PermissionDecision("allowed", f"allowed on the terminal: {reply}")

    def _remember(self, tool: Tool, args: Mapping[str, Any], scope: Scope, session_id: str) -> None:
        """Raises ConfigError if it cannot be written. `once` leaves nothing behind, nor does a
        session for a call that is in none."""
        if scope == "always" or (scope == "session" and session_id):
            grant = Grant(
                tool=tool.name,
                session_id=session_id if scope == "session" else None,
                by=self.by,
                definition=tool.definition,
                hosts=tuple(sorted(hosts_named(tool, args) - {""})),
            )
            self.grants.add(grant)


def hosts_named(tool: Tool, args: Mapping[str, Any]) -> frozenset[str]:
    """The hosts in the arguments of a tool that uses the network: those of addresses, and what
    stands in an argument for one. "" is one that cannot be read, which no grant covers."""
    if Access.NETWORK not in tool.access:
        return frozenset()
    return frozenset(map(host_of, addresses_of(args)))


def _denied(tool: Tool, decision: PermissionDecision) -> ToolDeniedError:
    if decision.verdict == "denied":
        return ToolDeniedError(
            f"{tool.name} may not run: {decision.why}",
            hint="the setting tools.deny in unified_flow.toml decides; nobody can allow it here",
        )
    always = f'--allow-tool {tool.name}, or allow = ["{tool.name}"] under [tools]'
    if tool.name == INTERNET_RESEARCH:
        always += ', and hosts = ["its host"] under [research]'
    return ToolDeniedError(
        f"{tool.name} may not run: {decision.why}",
        hint=(
            f"for every turn: {always} in unified_flow.toml; for the turn that waits: resolve its"
            " intervention with --retry --grant once"
        ),
    )


@lru_cache(maxsize=1024)
def decide(
    name: str, access: frozenset[Access], *, allow: tuple[str, ...], deny: tuple[str, ...]
) -> PermissionDecision:
    """The decision of the settings; `allow` and `deny` have patterns such as `memory.*`."""
    if (pattern := _matching(name, deny)) is not None:
        return PermissionDecision("denied", f"tools.deny holds {pattern!r}")
    if not access & GATED:
        return PermissionDecision("allowed", "only reads")
    if (pattern := _matching(name, allow)) is not None:
        return PermissionDecision("allowed", f"tools.allow holds {pattern!r}")
    return PermissionDecision("ask", f"it {describe_access(access)}, and nobody has allowed it")


def describe_access(access: frozenset[Access]) -> str:
    """What a tool with this access does, as a verb."""
    if access >= GATED:
        return "writes and uses the network"
    if Access.NETWORK in access:
        return "uses the network"
    return "writes" if Access.WRITES in access else "only reads"


def _matching(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
