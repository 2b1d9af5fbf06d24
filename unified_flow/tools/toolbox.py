"""The tools of a flow: described to the planner, checked before a call, called within a time.

A person writes arguments as `key=value` pairs or as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from unified_flow.errors import (
    ConfigError,
    ToolArgumentError,
    ToolError,
    ToolNotFoundError,
    ToolTimeoutError,
)
from unified_flow.lib.compact_json import encode
from unified_flow.lib.printable import brief_repr
from unified_flow.tools import BUILT_IN, CALLER, Caller, Tool, ToolOutput
from unified_flow.tools.plugins import ToolModules
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.sections import ToolDescription

if TYPE_CHECKING:
    from unified_flow.tools.mcp_server import McpServer

MAX_RESULT_CHARS = 1_000_000
_VALUE_SHOWN = 60
_ERRORS_SHOWN = 8


class Toolbox:
    """`servers` list their tools when `open` first needs them: `SERVER.tool`. `modules` are read
    again there once their files change."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        servers: Iterable[McpServer] = (),
        modules: ToolModules | None = None,
    ) -> None:
        self._built_in = tuple(tools)
        self._servers = tuple(servers)
        self.servers = tuple(server.name for server in self._servers)
        self.modules = modules or ToolModules(())
        self._of_modules = self.modules.tools()
        self._served: dict[str, tuple[Tool, ...]] = {}
        self._tools = _by_name((*self._built_in, *self._of_modules))

    async def open(self, name: str | None = None) -> None:
        """Load the tools of every server, or of the one that the tool `name` belongs to.

        Raises whatever keeps a server from answering, unless it is optional (`lacking`): a tool
        that is configured and missing is a failure, not a smaller toolbox. ConfigError for a
        module that cannot be loaded.
        """
        own = self.modules.tools()
        if not self._servers and own is self._of_modules:
            return
        wanted = [s for s in self._servers if name is None or name.startswith(f"{s.name}.")]
        found = await asyncio.gather(*(server.tools() for server in wanted))
        served = {server.name: tuple(tools) for server, tools in zip(wanted, found, strict=True)}
        known = self._served | served
        if own != self._of_modules or known != self._served:
            rest = (tool for tools in known.values() for tool in tools)
            # First, since it may raise: then the next turn loads them again.
            self._tools = _by_name((*self._built_in, *own, *rest))
            self._of_modules, self._served = own, known
            self.__dict__.pop("_described", None)

    @property
    def lacking(self) -> dict[str, str]:
        """Optional servers that did not answer, and why."""
        return {server.name: why for server in self._servers if (why := server.lacking)}

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """Full names of which a server has several tools, as far as servers are loaded."""
        return tuple(name for server in self._servers for name in server.ambiguous)

    async def aclose(self) -> None:
        """Closes every server, then raises the first error."""
        outcomes = await asyncio.gather(
            *(server.aclose() for server in self._servers), return_exceptions=True
        )
        for error in outcomes:
            if error is not None:
                raise error

    def __iter__(self) -> Iterator[Tool]:
        """The tools that are known so far."""
        return iter(self._tools.values())

    def describe(self, *, personal: bool = True) -> tuple[ToolDescription, ...]:
        """`personal` False: without the tools that touch stored facts about the user."""
        if personal:
            return self._described
        return tuple(each for each in self._described if not self._tools[each.name].personal)

    @cached_property
    def _described(self) -> tuple[ToolDescription, ...]:
        return tuple(
            ToolDescription(
                tool.name,
                tool.description,
                _schema(tool.arguments),
                own=tool.source != BUILT_IN,
            )
            for tool in self._tools.values()
        )

    def check(self, request: ToolRequest) -> tuple[Tool, BaseModel]:
        """The tool and its arguments, before anything runs.

        Raises ToolNotFoundError or ToolArgumentError, which names every bad argument.
        """
        tool = self._tools.get(request.tool)
        if tool is None:
            raise self._not_found(request.tool)
        try:
            return tool, tool.arguments.model_validate(request.args)
        except ValidationError as exc:
            raise _bad_arguments(tool, exc) from exc

    async def call(
        self,
        tool: Tool,
        args: BaseModel,
        caller: Caller | None = None,
        *,
        within_s: float | None = None,
    ) -> ToolOutput:
        """Raises ToolTimeoutError after the tool's own time, or after `within_s` if that is
        sooner, else whatever the tool raises."""
        before = CALLER.set(caller or Caller())
        timeout_s = tool.timeout_s if within_s is None else min(tool.timeout_s, within_s)
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                return _bounded(tool, await tool.run(args))
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise ToolTimeoutError(
                f"{tool.name} did not finish in {timeout_s:g} s",
                hint=f"Ask {tool.name} for less, or give it more time.",
            ) from exc
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ToolError(f"{tool.name} was cancelled by something it waited for") from exc
        finally:
            CALLER.reset(before)

    def _not_found(self, name: str) -> ToolNotFoundError:
        close = get_close_matches(name, self._tools, n=3, cutoff=0.5)
        if name in self.ambiguous:
            hint = "Its server has several tools of that name, so that none of them is used."
        elif close:
            hint = f"Did you mean {' or '.join(close)}?"
        else:
            hint = f"The tools are: {', '.join(self._tools) or 'none'}."
        return ToolNotFoundError(f"there is no tool {brief_repr(name, _VALUE_SHOWN)}", hint=hint)


@lru_cache
def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Shared, for it costs a millisecond: it is not to be changed."""
    return arguments.model_json_schema()


def _bounded(tool: Tool, output: ToolOutput) -> ToolOutput:
    """What a tool returns goes into the journal and to models. Raises ToolError for too much, and
    for what no journal can take: the turn could record nothing after it."""
    result = output.result
    try:
        text = result if isinstance(result, str) else encode(result)
    except (ValueError, RecursionError) as exc:
        raise ToolError(
            f"{tool.name} returned what cannot be written as JSON",
            hint="Return text, numbers, lists, dicts, dataclasses or pydantic models.",
        ) from exc
    length = len(text) + sum(len(claim.claim) for claim in output.claims)
    if length > MAX_RESULT_CHARS:
        raise ToolError(
            f"{tool.name} returned {length:,} characters; {MAX_RESULT_CHARS:,} at most",
            hint=f"Ask {tool.name} for less.",
        )
    return output


def _by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in tools:
        if (other := found.get(tool.name)) is not None:
            raise ConfigError(
                f"there are two tools named {tool.name} ({other.source}, {tool.source})",
                hint="Rename one of them.",
            )
        found[tool.name] = tool
    return found


def _bad_arguments(tool: Tool, exc: ValidationError) -> ToolArgumentError:
    known = [info.alias or name for name, info in tool.arguments.model_fields.items()]
    problems = [_argument(error, known) for error in exc.errors(include_url=False)]
    return ToolArgumentError(
        f"{tool.name}: " + "; ".join(problems[:_ERRORS_SHOWN]),
        hint=f"The arguments of {tool.name} are: {', '.join(known) or 'none'}.",
    )


def _argument(error: Any, known: list[str]) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "arguments"
    if error["type"] == "extra_forbidden":
        close = get_close_matches(path, known, n=1)
        guess = f" (did you mean {close[0]}?)" if close else ""
        return f"unknown argument {brief_repr(path, _VALUE_SHOWN)}{guess}"
    if error["type"] == "missing":
        return f"argument {path} is missing"
    wanted = error["msg"].removeprefix("Value error, ")
    return f"argument {path}: {wanted}, not {brief_repr(error['input'], _VALUE_SHOWN)}"


def arguments_from_json(text: str) -> dict[str, Any]:
    """Raises ValueError for what is no JSON object."""
    arguments = json.loads(text)
    if not isinstance(arguments, dict):
        raise ValueError("it is no JSON object")
    return arguments


def arguments_from_pairs(pairs: Iterable[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value is text where the schema says so, else JSON if it is any. Raises ValueError."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"{pair!r} is not key=value")
        kind = (schema.get("properties") or {}).get(key, {})
        arguments[key] = value if kind.get("type") == "string" else _json_or_text(value)
    return arguments


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
