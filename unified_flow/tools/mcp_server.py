"""The tools of an MCP server, as `SERVER.tool`; the extra `mcp` brings the SDK.

Arguments are checked by the server's own schema, which is as untrusted as they are.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
from asyncio import to_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from mimetypes import guess_extension
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, RootModel, model_validator

from interventions.home import open_private
from unified_flow.config.tables import McpSettings
from unified_flow.errors import (
    ConfigError,
    ToolArgumentError,
    ToolError,
    ToolServerError,
    needs_extra,
)
from unified_flow.lib.text.linear_regex import searcher
from unified_flow.tools import NAME, Access, Tool, ToolOutput, current_caller
from unified_flow.tools.functions import claims_of

if TYPE_CHECKING:
    from mcp.types import ContentBlock
    from mcp.types import Tool as McpTool

    from unified_flow.tools.mcp_connection import McpConnection


ERRORS_SHOWN = 8
MAX_SCHEMA_CHARS = 100_000
MAX_TOOLS = 5_000
MAX_MESSAGE_CHARS = 4_000
PAUSE_S = 60.0  # until an optional server that did not answer is asked again
logger = logging.getLogger(__name__)


class McpServer:
    """Connects when its tools are first needed, and again when the connection is gone. `lacking`
    says why an optional one did not answer."""

    def __init__(self, name: str, settings: McpSettings, folder: Path) -> None:
        self.name = name
        self.lacking: str | None = None
        self._asked_again_at = 0.0
        self._settings = settings
        self._folder = folder
        self._connection: McpConnection | None = None
        self._listed: tuple[McpTool, ...] = ()
        self._tools: tuple[Tool, ...] = ()
        self.ambiguous: tuple[str, ...] = ()
        self._connecting: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def tools(self) -> Sequence[Tool]:
        """Raises ConfigError or ToolError; an optional server has none while it does not answer."""
        if monotonic() < self._asked_again_at:
            return ()
        try:
            found = await self._current_tools()
        except (ConfigError, ToolError) as exc:
            self._note_lacking(exc)
            return ()
        self.lacking = None
        return found

    def _note_lacking(self, exc: Exception) -> None:
        """Raises it again unless the server is optional."""
        if not self._settings.optional:
            raise exc
        self.lacking = str(exc)
        self._asked_again_at = monotonic() + PAUSE_S

    async def _current_tools(self) -> Sequence[Tool]:
        connection = await self._connected()
        await connection.refresh()
        if connection.tools is not self._listed:
            usable, doubled = _unambiguous(self._bounded(connection.tools))
            self._listed = connection.tools
            self._tools = tuple(self._as_tool(tool) for tool in usable)
            self.ambiguous = tuple(f"{self.name}.{name}" for name in doubled)
            for name in self.ambiguous:
                logger.warning("several tools are named %s: none of them is used", name)
        return self._tools

    def _bounded(self, tools: Sequence[McpTool]) -> Sequence[McpTool]:
        """The tools that the settings and a model can name. Raises ToolError for too many."""
        own = self._settings
        tools = [
            tool
            for tool in tools
            if NAME.fullmatch(tool.name)
            and _matches(tool.name, own.include)
            and not _matches(tool.name, own.exclude)
        ]
        if len(tools) > MAX_TOOLS:
            raise ToolError(
                f"the MCP server {self.name} has {len(tools):,} tools, and {MAX_TOOLS} at most can"
                " be used",
                hint=f'include = ["…"] under [mcp.{self.name}] names those that are needed',
            )
        return tools

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    async def _connected(self) -> McpConnection:
        connection_type = _sdk()
        async with self._lock():
            if self._connection is not None and not await self._connection.is_usable():
                await self._connection.aclose()
                self._connection = None
            if self._connection is None:
                self._connection = await connection_type.open(
                    self.name, self._settings, self._folder
                )
            return self._connection

    def _lock(self) -> asyncio.Lock:
        """The lock of the running loop: loops may use a flow one after another."""
        loop = asyncio.get_running_loop()
        if self._connecting is None or self._connecting[0] is not loop:
            self._connecting = loop, asyncio.Lock()
        return self._connecting[1]

    def _as_tool(self, tool: McpTool) -> Tool:
        own = self._settings
        name = f"{self.name}.{tool.name}"

        async def run(args: BaseModel) -> ToolOutput:
            return await self._call(tool.name, args.model_dump())

        return Tool(
            name=name,
            description=tool.description or tool.title or tool.name,
            arguments=arguments_of(name, tool.input_schema),
            access=access_of(tool, trusted=own.trust_hints),
            run=run,
            timeout_s=own.timeout_s,
            source=f"MCP server {self.name}",
            server=own.url or json.dumps([own.command, own.args, own.env, own.env_from]),
        )

    async def _call(self, tool: str, args: dict[str, Any]) -> ToolOutput:
        """Raises ToolServerError if the server is gone, ToolError if it says that it failed."""
        from mcp import MCPError

        connection = await self._connected()
        name = f"{self.name}.{tool}"
        try:
            result = await connection.call(tool, args, key=current_caller().call_id)
        except ToolServerError as exc:
            self._note_lacking(exc)
            raise
        except MCPError as exc:
            message = connection.clean(exc.message)
            raise ToolError(f"{name} was refused by its server: {message} ({exc.code})") from exc
        texts = [await to_thread(_text, part) for part in result.content]
        if result.is_error:
            message = connection.clean(" ".join(texts)[:MAX_MESSAGE_CHARS]) or "it does not say why"
            raise ToolError(f"{name} says that it failed: {message}")
        structured = result.structured_content
        if structured is None:
            return ToolOutput("\n".join(texts), claims_of(name, texts))
        claimed = texts if any(text.strip() for text in texts) else [json.dumps(structured)]
        return ToolOutput(structured, claims_of(name, claimed))


def _unambiguous(tools: Sequence[McpTool]) -> tuple[list[McpTool], list[str]]:
    """One tool of each name, and the names of which there are different ones. None of those is
    used: a call goes by the name, and nobody knows which schema and access it would meet."""
    named: dict[str, list[McpTool]] = {}
    for tool in tools:
        named.setdefault(tool.name, []).append(tool)
    doubled = [name for name, own in named.items() if any(other != own[0] for other in own)]
    return [own[0] for name, own in named.items() if name not in doubled], doubled


def access_of(tool: McpTool, *, trusted: bool) -> frozenset[Access]:
    """A server's hint that a tool only reads counts only if the configuration trusts it."""
    access = {Access.NETWORK, Access.WRITES}
    hints = tool.annotations
    if trusted and hints is not None and hints.read_only_hint:
        access = {Access.READS}
        if hints.open_world_hint is not False:
            access.add(Access.NETWORK)
    return frozenset(access)


def _sdk() -> type[McpConnection]:
    with needs_extra("an MCP server", "mcp"):
        import jsonschema  # noqa: F401
        import mcp  # noqa: F401
    from unified_flow.tools.mcp_connection import McpConnection

    return McpConnection


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _text(part: ContentBlock) -> str:
    """The part's text; of an image, a sound or a file, where it is kept."""
    match part.type:
        case "text":
            return part.text
        case "image" | "audio":
            return _kept(part.data, part.mime_type, part.type)
        case "resource":
            found = part.resource
            if hasattr(found, "text"):
                return found.text
            return _kept(found.blob, found.mime_type, str(found.uri))
        case "resource_link":
            return f"{part.name}: {part.uri}"


def _kept(encoded: str, mime_type: str | None, what: str) -> str:
    """Among the files of the turn that runs. Raises ToolError for what is no base64."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError as exc:
        raise ToolError(f"the {what} that the server sent is no base64") from exc
    folder = current_caller().files
    if folder is None:
        return f"[{what}: {mime_type}, {len(data):,} bytes, not kept]"
    suffix = guess_extension(mime_type or "") or ".bin"
    path = folder / f"{sha256(data).hexdigest()[:16]}{suffix}"
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(data)
    return f"[{what}: {mime_type}, kept in {path}]"


def arguments_of(name: str, schema: dict[str, Any]) -> type[BaseModel]:
    """A model that any JSON object is, checked by `schema`. Raises ToolError for one that is none,
    or that is too large for a planner's prompt."""
    if (size := len(json.dumps(schema))) > MAX_SCHEMA_CHARS:
        raise ToolError(f"{name} has a schema of {size:,} characters; {MAX_SCHEMA_CHARS:,} at most")
    problems = _checker(name, schema)

    class Checked(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def _fits(self) -> Self:
            found = problems(self.root)
            if found:
                known = ", ".join(schema.get("properties", ())) or "none"
                raise ToolArgumentError(
                    f"{name}: " + "; ".join(found[:ERRORS_SHOWN]),
                    hint=f"The arguments of {name} are: {known}.",
                )
            return self

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return schema

    return Checked


def _checker(name: str, schema: dict[str, Any]) -> Callable[[dict[str, Any]], list[str]]:
    """A function that lists what is wrong with arguments."""
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as exc:
        raise ToolError(f"{name} has a schema that is none: {exc.message}") from exc
    bounded = jsonschema.validators.extend(kind, _IN_LINEAR_TIME)
    validator = bounded(schema, registry=Registry())  # nothing is fetched for a reference

    def problems(args: dict[str, Any]) -> list[str]:
        try:
            found = sorted(validator.iter_errors(args), key=lambda each: list(map(str, each.path)))
        except Unresolvable as exc:
            raise ToolError(
                f"{name} has a schema that refers to {exc.ref!r}, which is not in it",
                hint="nothing is fetched for a schema; tell the maker of the server",
            ) from exc
        except RecursionError as exc:
            raise ToolError(f"{name} has a schema that refers to itself without end") from exc
        return [
            f"{'.'.join(map(str, each.path)) or 'arguments'}: {each.message[:200]}"
            for each in found
        ]

    return problems


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    """Checks `pattern`; one that only a backtracking engine knows is left to the server."""
    from jsonschema import ValidationError

    with suppress(ValueError):
        if isinstance(instance, str) and not searcher(pattern)(instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _left_to_the_server(*_: Any) -> Iterator[Any]:
    """What would need patterns over names: the server checks its arguments once more."""
    return iter(())


def _additional(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    import jsonschema

    if "patternProperties" not in schema:
        standard = jsonschema.Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from standard(validator, wanted, instance, schema) or ()


_IN_LINEAR_TIME = {
    "additionalProperties": _additional,
    "pattern": _pattern,
    "patternProperties": _left_to_the_server,
    "unevaluatedProperties": _left_to_the_server,
}
