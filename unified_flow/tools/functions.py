"""A typed Python function as a tool: its schema from the signature, its description from the
docstring.

Coroutine functions run on an event loop of their own: one that blocks holds up neither a turn nor
Ctrl-C. The loop outlasts the calls, so that a client that a tool keeps between two calls works in
both. A blocked loop is abandoned, and a new one takes its place.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO, TypeVar, cast, get_type_hints, overload

from pydantic import BaseModel, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from unified_flow.errors import ConfigError, ToolError
from unified_flow.lib.threads import DaemonThreads, in_daemon_thread
from unified_flow.tools import Access, Arguments, Tool, ToolOutput, claim
from unified_flow.turns.results import Claim

T = TypeVar("T")

ANSWER_S = 0.25  # else the loop is blocked by an earlier call
CLEANUP_S = 0.5  # that a cancelled call has for its `finally`
_LOCK = threading.Lock()
F = TypeVar("F", bound=Callable[..., Any])
MARK = "__unified_flow_tool__"
UNDECLARED = frozenset({Access.WRITES})
_FOREIGN: ContextVar[bool] = ContextVar("unified_flow.foreign", default=False)


@dataclass(frozen=True)
class Declaration:
    """What `@tool` says of a function."""

    name: str | None = None
    access: frozenset[Access] = UNDECLARED
    timeout_s: float = 30.0


@overload
def tool(function: F) -> F: ...
@overload
def tool(
    *, name: str | None = None, access: str | Iterable[str] = UNDECLARED, timeout_s: float = 30.0
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    *,
    name: str | None = None,
    access: str | Iterable[str] = UNDECLARED,
    timeout_s: float = 30.0,
) -> F | Callable[[F], F]:
    """Declare what a function touches: `@tool(access="reads")`, or "writes", "network", or several.

    What declares nothing counts as writing, and so runs only if allowed. Raises ConfigError.
    """
    if function is not None and not callable(function):
        raise ConfigError(
            f"@tool stands before a function, and got {function!r}", hint='@tool(access="reads")'
        )
    named = {access} if isinstance(access, str) else {*access}
    if unknown := named - {*Access}:
        raise ConfigError(
            f"a tool has no access {unknown.pop()!r}", hint=f"one of {', '.join(Access)}"
        )
    declared = Declaration(name, frozenset(map(Access, named)), timeout_s)

    def mark(marked: F) -> F:
        setattr(marked, MARK, declared)
        return marked

    return mark(function) if function is not None else mark


def is_marked(value: object) -> bool:
    return isinstance(getattr(value, MARK, None), Declaration)


def from_function(function: Callable[..., Any], *, source: str = "function") -> Tool:
    """Sync functions run in a thread, coroutine functions on an event loop in another one.

    Raises ConfigError for a parameter without a type, or of a kind or type that has no schema.
    """
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigError(
            f"{function.__name__} yields, and a tool returns", hint="Return a list of it all."
        )
    declared: Declaration = getattr(function, MARK, Declaration())
    name = declared.name or function.__name__
    description, described = _parsed_docstring(function)
    arguments = _arguments(name, function, described)
    names = {field: info.alias or field for field, info in arguments.model_fields.items()}

    async def run(args: BaseModel) -> ToolOutput:
        values = {alias: getattr(args, field) for field, alias in names.items()}
        if inspect.iscoroutinefunction(function):
            returned = await await_in_background(name, partial(function, **values))
        else:
            returned = await in_daemon_thread(partial(_call, name, function, values))
            if inspect.isawaitable(returned):  # a coroutine function behind an ordinary decorator
                returned = await await_in_background(name, lambda: returned)
        return output_of(name, returned)

    return Tool(
        name=name,
        description=description or name.replace("_", " "),
        arguments=arguments,
        access=declared.access,
        run=run,
        timeout_s=declared.timeout_s,
        source=source,
        declared=is_marked(function),
    )


def output_of(name: str, returned: Any) -> ToolOutput:
    """What a function returned, JSON-able, with itself as its one claim."""
    if isinstance(returned, ToolOutput):
        return returned
    try:
        result = to_jsonable_python(returned, inf_nan_mode="strings")
    except PydanticSerializationError as exc:
        raise ToolError(
            f"{name} returned {type(returned).__name__}, which cannot be written as JSON",
            hint="Return text, numbers, lists, dicts, dataclasses or pydantic models.",
        ) from exc
    if result is None:
        return ToolOutput(None, claims_of(name, [f"{name} has run."]))
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return ToolOutput(result, claims_of(name, [text]))


def claims_of(name: str, texts: Iterable[str]) -> list[Claim]:
    return [claim(text, name) for text in texts if text.strip()]


def _call(name: str, function: Callable[..., Any], values: dict[str, Any]) -> Any:
    with _as_tool_errors(name):
        return function(**values)


async def await_in_background(name: str, make: Callable[[], Awaitable[T]]) -> T:
    """What the tool's coroutine returns; it is made and awaited on an event loop where it may
    block, in the context of this task.

    On cancellation it is cancelled there and waited for, but not for long. Raises what it raises,
    ToolError for what is no Exception; asyncio.CancelledError also if it cancels itself.
    """
    await _replace_if_blocked()
    here = asyncio.get_running_loop()
    ended = asyncio.Event()

    async def call() -> T:
        try:
            with _as_tool_errors(name):
                return await make()
        finally:
            with suppress(RuntimeError):  # that loop is closed
                here.call_soon_threadsafe(ended.set)

    with _LOCK:
        future = asyncio.run_coroutine_threadsafe(call(), _CURRENT[0].loop)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLEANUP_S):
                await ended.wait()
        raise


class _Stdout:
    """`own`, or stderr for other people's code: stdout is for answers."""

    def __init__(self, own: TextIO) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if _FOREIGN.get() else self._own, name)


@contextmanager
def written_to_stderr() -> Iterator[None]:
    """What is printed here, whatever other tasks and threads print meanwhile."""
    if not isinstance(sys.stdout, _Stdout):
        sys.stdout = cast("TextIO", _Stdout(sys.stdout))
    before = _FOREIGN.set(True)
    try:
        yield
    finally:
        _FOREIGN.reset(before)


@contextmanager
def _as_tool_errors(name: str) -> Iterator[None]:
    """What is no Exception would end the process instead of the turn, and StopIteration cannot pass
    through an event loop."""
    try:
        with written_to_stderr():
            yield
    except BaseException as exc:
        if isinstance(exc, Exception | asyncio.CancelledError) and type(exc) is not StopIteration:
            raise
        raise ToolError(f"{name} raised {type(exc).__name__}: {exc}") from exc


def _parsed_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The text, and that of each parameter; in Google, NumPy, Sphinx or Epydoc style."""
    from docstring_parser import parse

    doc = parse(inspect.getdoc(function) or "")
    text = "\n".join(part for part in (doc.short_description, doc.long_description) if part)
    described = {each.arg_name: each.description or "" for each in doc.params}
    return text, described


def _arguments(
    name: str, function: Callable[..., Any], described: dict[str, str]
) -> type[Arguments]:
    """Fields have names of ours and the parameter's as alias, since `schema` could be no field."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as exc:
        raise ConfigError(f"the types of {name} cannot be read: {exc}") from exc
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        label = parameter.name
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(
                f"{name}: the parameter {label} cannot be given by name",
                hint="A tool's parameters are ordinary ones, without * or /.",
            )
        if label not in hints:
            raise ConfigError(
                f"{name}: the parameter {label} has no type",
                hint=f"Write {label}: str, or what it is.",
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        try:
            to_jsonable_python(None if default is ... else default)
        except PydanticSerializationError as exc:
            raise ConfigError(
                f"{name}: the default of {label} is no JSON",
                hint="Use text, numbers, lists, dicts or None as defaults.",
            ) from exc
        info = Field(default, alias=label, description=described.get(label) or None)
        fields[f"arg{number}"] = (hints[label], info)
    try:
        model = create_model(f"{name}_arguments", __base__=Arguments, **fields)
        model.model_json_schema()
    except PydanticUserError as exc:
        raise ConfigError(
            f"{name}: there is no JSON schema for its parameters: {exc.message}",
            hint="Use text, numbers, lists, dicts, literals, enums or pydantic models.",
        ) from exc
    return model


class _BackgroundLoop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(DaemonThreads())
        self._abandoned = asyncio.Event()
        self.thread = threading.Thread(target=self._run, daemon=True, name="tools")
        self.thread.start()

    def _run(self) -> None:
        self.loop.run_until_complete(self._until_idle())
        self.loop.close()

    async def _until_idle(self) -> None:
        await self._abandoned.wait()
        while calls := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(calls)

    async def answers(self) -> bool:
        """False if it is blocked, or in a process that this one is a fork of."""
        if not self.thread.is_alive():
            return False
        answer = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop)
        done, _ = await asyncio.wait([asyncio.wrap_future(answer)], timeout=ANSWER_S)
        return bool(done)

    def abandon(self) -> None:
        """Let the loop end after the last of its calls."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self._abandoned.set)


_CURRENT: list[_BackgroundLoop] = []


async def _replace_if_blocked() -> None:
    before = _CURRENT[0] if _CURRENT else None
    if before is not None and await before.answers():
        return
    with _LOCK:
        # Else another thread has replaced it meanwhile.
        if before is (_CURRENT[0] if _CURRENT else None):
            _CURRENT[:] = [_BackgroundLoop()]
            if before is not None:
                before.abandon()
