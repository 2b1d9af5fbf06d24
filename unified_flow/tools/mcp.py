"""The tools of an MCP server, as `SERVER.tool`; the extra `mcp` brings the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, RootModel, model_validator

from unified_flow.config_tables import McpSettings
from unified_flow.errors import ConfigError, ToolArgumentError, ToolError
from unified_flow.tools import Access, Tool, ToolOutput
from unified_flow.tools.functions import claims_of

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as McpTool

    from unified_flow.tools.mcp_connection import Connection

ERRORS_SHOWN = 8
MAX_CHARS = 1_000_000


class McpServer:
    """Connects when its tools are first needed, and again when the connection is gone."""

    def __init__(self, name: str, settings: McpSettings, folder: Path) -> None:
        self.name = name
        self._settings = settings
        self._folder = folder
        self._connection: Connection | None = None
        self._tools: tuple[Tool, ...] = ()
        self._connecting: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def tools(self) -> Sequence[Tool]:
        """Raises ConfigError or ToolServerError."""
        before = self._connection
        connection = await self._connected()
        if connection is not before or not self._tools:
            self._tools = tuple(self._as_tool(tool, connection) for tool in connection.tools)
        return self._tools

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    async def _connected(self) -> Connection:
        connection_type = _sdk()
        async with self._lock():
            if self._connection is None or not self._connection.is_alive:
                if self._connection is not None:
                    await self._connection.aclose()
                    self._connection = None
                self._connection = await connection_type.opened(
                    self.name, self._settings, self._folder
                )
            return self._connection

    def _lock(self) -> asyncio.Lock:
        """Of the running loop: a flow may be used by one after another."""
        loop = asyncio.get_running_loop()
        if self._connecting is None or self._connecting[0] is not loop:
            self._connecting = loop, asyncio.Lock()
        return self._connecting[1]

    def _as_tool(self, tool: McpTool, connection: Connection) -> Tool:
        name = f"{self.name}.{tool.name}"

        async def run(args: BaseModel) -> ToolOutput:
            return await self._call(tool.name, args.model_dump())

        return Tool(
            name=name,
            description=tool.description or tool.title or tool.name,
            arguments=_arguments(name, tool.input_schema),
            access=access_of(tool, trusted=self._settings.trust_hints),
            run=run,
            timeout_s=self._settings.timeout_s,
            source=f"MCP server {self.name}",
        )

    async def _call(self, tool: str, args: dict[str, Any]) -> ToolOutput:
        """Raises ToolServerError if the server is gone, ToolError if it says that it failed."""
        from mcp import MCPError

        connection = await self._connected()
        name = f"{self.name}.{tool}"
        try:
            result = await connection.call(tool, args)
        except MCPError as exc:
            said = connection.clean(exc.message)
            raise ToolError(f"{name} was refused by its server: {said} ({exc.code})") from exc
        texts = _texts(result)
        if sum(map(len, texts)) > MAX_CHARS:
            raise ToolError(
                f"{name} answered with more than {MAX_CHARS:,} characters", hint="Ask it for less."
            )
        if result.is_error:
            said = connection.clean(" ".join(texts)) or "it does not say why"
            raise ToolError(f"{name} says that it failed: {said}")
        structured = result.structured_content
        return ToolOutput(
            result="\n".join(texts) if structured is None else structured,
            claims=claims_of(name, texts),
        )


def servers_of(settings: dict[str, McpSettings], folder: Path) -> list[McpServer]:
    return [McpServer(name, each, folder) for name, each in settings.items()]


def access_of(tool: McpTool, *, trusted: bool) -> frozenset[Access]:
    """A server's own word that a tool only reads counts only if the configuration trusts it."""
    access = {Access.NETWORK, Access.WRITES}
    hints = tool.annotations
    if trusted and hints is not None and hints.read_only_hint:
        access = {Access.READS}
        if hints.open_world_hint is not False:
            access.add(Access.NETWORK)
    return frozenset(access)


def _sdk() -> type[Connection]:
    try:
        import jsonschema  # noqa: F401
        import mcp  # noqa: F401
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"MCP servers are configured, and {exc.name} is not installed",
            hint="pip install 'unified-flow[mcp]'",
        ) from exc
    from unified_flow.tools.mcp_connection import Connection

    return Connection


def _texts(result: CallToolResult) -> list[str]:
    """The text of each part; what is no text is only said to be there."""
    texts = []
    for part in result.content:
        match part.type:
            case "text":
                texts.append(part.text)
            case "resource" if hasattr(part.resource, "text"):
                texts.append(part.resource.text)
            case "resource_link":
                texts.append(f"{part.name}: {part.uri}")
            case _:
                texts.append(f"[{part.type}]")
    return texts


def _arguments(name: str, schema: dict[str, Any]) -> type[BaseModel]:
    """A model that any JSON object is, checked by the server's own schema."""
    problems = _checker(name, schema)

    class Checked(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def _fits(self) -> Self:
            found = problems(self.root)
            if found:
                known = ", ".join(_properties(schema)) or "none"
                raise ToolArgumentError(
                    f"{name}: " + "; ".join(found[:ERRORS_SHOWN]),
                    hint=f"The arguments of {name} are: {known}.",
                )
            return self

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return schema

    return Checked


def _properties(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _checker(name: str, schema: dict[str, Any]) -> Callable[[dict[str, Any]], list[str]]:
    """What is wrong with arguments, in words. Raises ToolError for a schema that is none."""
    import jsonschema
    from referencing import Registry

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as exc:
        raise ToolError(f"{name} has a schema that is none: {exc.message}") from exc
    validator = kind(schema, registry=Registry())  # nothing is fetched for a reference

    def problems(args: dict[str, Any]) -> list[str]:
        found = sorted(validator.iter_errors(args), key=lambda each: list(map(str, each.path)))
        return [
            f"{'.'.join(map(str, each.path)) or 'arguments'}: {each.message[:200]}"
            for each in found
        ]

    return problems
