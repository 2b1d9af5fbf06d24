"""One connection to an MCP server, through the official SDK, which starts and ends the process of
one that is a command; over HTTP, ended sessions and answers that are too large are noticed beside
the SDK. Imported only where the extra `mcp` is installed."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast
from urllib.parse import urlsplit

import httpx2
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.types import CONNECTION_CLOSED, ToolListChangedNotification

from interventions.secrets.redaction import redact_text
from unified_flow.config.tables import McpSettings
from unified_flow.errors import ConfigError, ToolError, ToolServerError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream
    from mcp.types import CallToolResult, RequestParamsMeta
    from mcp.types import Tool as McpTool

ANSWERS_WITHIN_S = 2.0
LEAVES_WITHIN_S = 1.0  # over HTTP, once its session is ended
ENDED_WITHIN_S = 10.0  # a process: the SDK gives it 2 s, terminates it, and kills it after 2 s more
CLOSED_WITHIN_S = 2.0  # once the connection is cut
STDERR_LINES = 5
STDERR_BYTES = 4096
MOST_PAGES = 100
MAX_BODY_BYTES = 32 * 1024 * 1024
CONNECT_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 300.0  # of one piece of an answer; a call as a whole has its own time
IDEMPOTENCY_KEY = "unified-flow/idempotency-key"  # in the `_meta` of a call
_CLOSED = "Connection closed"
_SESSION = "mcp-session-id"
_NOT_FOUND = 404
# The SDK hides how a process ended; this shell tells it after the server's own last words.
_TELLING = '"$@"; code=$?; echo "exit code $code" >&2; exit $code'


class McpConnection:
    """Made by `open`; everything else needs it to be open.

    A task of its own holds it, because the SDK must be left in the task that entered it, and the
    turn that first needs the server is seldom the one that closes the flow.
    """

    def __init__(self, name: str, settings: McpSettings, folder: Path) -> None:
        self.name = name
        self.tools: tuple[McpTool, ...] = ()
        self._outdated = False
        self._settings = settings
        self._folder = folder
        self._secrets = _secrets(name, settings)
        self._stderr: TextIO | None = None
        self._incoming: MemoryObjectReceiveStream[Any] | None = None  # of a process
        self._client: Client | None = None
        self._lost = False
        self._running = 0
        self._unanswered = False
        self._session_ended = False
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(), name=f"mcp {name}")

    @classmethod
    async def open(cls, name: str, settings: McpSettings, folder: Path) -> McpConnection:
        """Raises ConfigError for what cannot be started, ToolServerError for what does not work."""
        connection = cls(name, settings, folder)
        try:
            async with asyncio.timeout(settings.start_timeout_s):
                await asyncio.shield(connection._ready)
        except TimeoutError as exc:
            failure = connection.failure(f"did not answer in {settings.start_timeout_s:g} s")
            await connection.aclose()
            raise failure from exc
        except asyncio.CancelledError:
            await connection.aclose()
            raise
        return connection

    @property
    def is_alive(self) -> bool:
        """False once it is known to be gone, or in another event loop than its own."""
        if self._lost or self._session_ended or self._holder.done():
            return False
        if self._holder.get_loop() is not asyncio.get_running_loop():
            return False
        return self._is_connected

    async def call(self, tool: str, args: dict[str, Any], *, key: str = "") -> CallToolResult:
        """`key` is the idempotency key. Raises ToolServerError if the server is gone, MCPError if
        it refuses."""
        if not self.is_alive or self._client is None:
            raise self.failure("has gone")
        self._running += 1
        try:
            meta = cast("RequestParamsMeta", {IDEMPOTENCY_KEY: key} if key else {})
            result = await self._client.call_tool(tool, args, meta=meta)
            self._unanswered = False
            return result
        except asyncio.CancelledError:
            self._unanswered = True
            raise
        except MCPError as exc:
            if self._session_ended:
                raise self.failure(f"had ended the session when {tool} was called") from exc
            # A server may send that code itself; the message is the SDK's.
            is_closed = (exc.code, exc.message) == (CONNECTION_CLOSED, _CLOSED)
            if not is_closed and self._is_connected:
                self._unanswered = False
                raise
            cause: Exception = exc
        except (OSError, EOFError, BrokenResourceError, ClosedResourceError, EndOfStream) as exc:
            cause = exc
        finally:
            self._running -= 1
        self._lost = True
        raise self.failure(f"went away while {tool} ran") from cause

    async def refresh(self) -> None:
        """Lists the tools again if the server said that they changed. Raises ToolServerError."""
        if not self._outdated or self._client is None:
            return
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                found = await _all_tools(self._client)
        except (MCPError, TimeoutError) as exc:
            raise self.failure("does not list its tools", exc) from exc
        self.tools, self._outdated = tuple(found), False

    async def is_usable(self) -> bool:
        """Asks the server only if a call has timed out, since one that hangs would do so with every
        later call; not while another call runs, which may be what it is busy with."""
        if not self.is_alive:
            return False
        if not self._unanswered or self._running or self._client is None:
            return True
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await self._client.list_tools()
        except MCPError:
            pass  # an answer, too
        except TimeoutError:
            return False
        self._unanswered = False
        return True

    async def aclose(self) -> None:
        """Ends the process that it started, or the session. Bounded in time."""
        if self._holder.get_loop() is not asyncio.get_running_loop():
            return  # its loop has ended, and ended it
        self._stop.set()
        if not self._ready.done():
            self._holder.cancel()
        # Cancelled while it ends a process, the SDK would leave that behind.
        within_s = LEAVES_WITHIN_S if self._settings.command is None else ENDED_WITHIN_S
        await asyncio.wait([self._holder], timeout=within_s)
        if not self._holder.done():
            self._holder.cancel()
            await asyncio.wait([self._holder], timeout=CLOSED_WITHIN_S)

    def failure(self, what: str, because: BaseException | None = None) -> ToolServerError:
        """Which server and its last lines, of which the exit code is one; without its secrets."""
        where = "" if self._settings.url is None else f" at {_public_url(self._settings.url)}"
        parts = [f"the MCP server {self.name}{where} {what}"]
        if because is not None and (reason := self.clean(str(because).strip())):
            parts.append(reason)
        hint = f"see whether [mcp.{self.name}] is right: unified-flow doctor"
        if lines := self._last_lines():
            parts.append("it last said: " + self.clean(" | ".join(lines)))
        return ToolServerError("; ".join(parts), hint=hint)

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        return redact_text(text)

    @property
    def _is_connected(self) -> bool:
        """False once a process has closed its output, since the SDK then closes its own end."""
        return self._incoming is None or self._incoming.statistics().open_send_streams > 0

    def _last_lines(self) -> list[str]:
        if self._stderr is None or self._stderr.closed:
            return []
        descriptor = self._stderr.fileno()
        size = os.fstat(descriptor).st_size
        data = os.pread(descriptor, STDERR_BYTES, max(0, size - STDERR_BYTES))
        lines = [line.strip() for line in data.decode(errors="replace").splitlines()]
        return [line for line in lines if line][-STDERR_LINES:]

    async def _hold(self) -> None:
        with tempfile.TemporaryFile("w+") as stderr:
            self._stderr = cast("TextIO", stderr)
            try:
                async with AsyncExitStack() as opened:
                    client = await self._enter(opened)
                    self.tools = tuple(await _all_tools(client))
                    self._client = client
                    self._ready.set_result(None)
                    listening = asyncio.create_task(self._listen(client))
                    opened.callback(listening.cancel)
                    await self._stop.wait()
            except asyncio.CancelledError:
                if not self._ready.done():
                    self._ready.cancel()
                raise
            except Exception as exc:  # noqa: BLE001 - whatever the SDK or the server does
                self._lost = True
                if not self._ready.done():
                    known = isinstance(exc, ConfigError)
                    error = exc if known else self.failure("cannot be used", _root_cause(exc))
                    self._ready.set_exception(error)

    async def _listen(self, client: Client) -> None:
        """A server of the newest protocol tells of changes only who listens."""
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._outdated = True

    async def _note(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._outdated = True

    async def _enter(self, opened: AsyncExitStack) -> Client:
        _silence_sdk_logs()
        transport = self._stdio() if self._settings.url is None else self._http()
        return await opened.enter_async_context(
            Client(transport, cache=None, message_handler=self._note)
        )

    @asynccontextmanager
    async def _stdio(self) -> AsyncIterator[Any]:
        own = self._settings
        assert own.command is not None
        assert self._stderr is not None
        parameters = StdioServerParameters(
            command="/bin/sh",
            args=["-c", _TELLING, "sh", _program(self.name, own.command), *own.args],
            env=own.env | {name: os.environ[name] for name in own.env_from},
            cwd=self._folder,
            encoding_error_handler="replace",
        )
        async with stdio_client(parameters, errlog=self._stderr) as streams:
            self._incoming = cast("MemoryObjectReceiveStream[Any]", streams[0])
            yield streams

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[Any]:
        async def look(response: httpx2.Response) -> None:
            """A server that no longer knows the session of a message sends 404, and wants a new one
            (MCP 2025-06-18, Transports, Session Management, 3 and 4)."""
            if response.request.method != "POST":
                return  # what a server sends unasked may be long
            if response.status_code == _NOT_FOUND and _SESSION in response.request.headers:
                self._session_ended = True
            response.stream = _BoundedBody(cast("httpx2.AsyncByteStream", response.stream))

        assert self._settings.url is not None
        headers = {key: os.environ[name] for key, name in self._settings.headers_env.items()}
        async with (
            httpx2.AsyncClient(
                headers=headers
                | {"Accept-Encoding": "identity"},  # what is counted is what is kept
                timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
                event_hooks={"response": [look]},
            ) as http,
            streamable_http_client(self._settings.url, http_client=http) as streams,
        ):
            yield streams


def _program(name: str, command: str) -> str:
    """The program's path, also beside this Python, which PATH does not always hold."""
    beside = Path(sys.executable).parent
    found = shutil.which(command) or shutil.which(command, path=str(beside))
    if found is None:
        raise ConfigError(
            f"the MCP server {name} cannot be started: there is no program {command}",
            hint=f"install it, or mend command under [mcp.{name}]",
        )
    return found


def _public_url(url: str) -> str:
    """The URL without what may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _silence_sdk_logs() -> None:
    """The SDK logs what a server sent as it came, with the secrets that it was given, and a
    process without logging has that on its terminal. What matters of it is raised as well."""
    for name in ("mcp.client", "mcp.shared"):
        logging.getLogger(name).propagate = False
        if not logging.getLogger(name).handlers:
            logging.getLogger(name).addHandler(logging.NullHandler())
    logging.getLogger("client").addFilter(_is_not_from_sdk)  # its session calls itself so


def _is_not_from_sdk(record: logging.LogRecord) -> bool:
    return "mcp" not in Path(record.pathname).parts


def _secrets(name: str, settings: McpSettings) -> list[str]:
    """The values of the variables that the settings name. Raises ConfigError for one unset."""
    names = [*settings.env_from, *settings.headers_env.values()]
    missing = [each for each in names if each not in os.environ]
    if missing:
        raise ConfigError(
            f"the MCP server {name} needs {', '.join(missing)}, which the environment lacks",
            hint="set it where this command runs; its value is kept nowhere",
        )
    return [value for each in names if (value := os.environ[each])]


async def _all_tools(client: Client) -> list[McpTool]:
    found: list[McpTool] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise ToolError(f"its list of tools has more than {MOST_PAGES} pages")


def _root_cause(exc: BaseException) -> BaseException:
    """The SDK runs in task groups, which wrap what was raised."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MAX_BODY_BYTES:
                most = MAX_BODY_BYTES // (1024 * 1024)
                raise httpx2.StreamError(f"the answer is larger than {most} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
