"""A person's own tools: entry points of installed packages, and modules that somebody names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from unified_flow.config.paths import is_module_path
from unified_flow.errors import ConfigError
from unified_flow.tools import Tool, ToolOutput
from unified_flow.tools.functions import await_in_background, from_function, is_marked

GROUP = "unified_flow.tools"


def installed_tools() -> list[Tool]:
    """Of every entry point in the group `unified_flow.tools`. Raises ConfigError."""
    found: list[Tool] = []
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        found += _of_entry_point(point)
    return found


def named_tools(specs: Sequence[str]) -> list[Tool]:
    """Of `module`, `module:name` and `path/to/file.py[:name]`. Raises ConfigError."""
    return [tool for spec in specs for tool in _of_spec(spec)]


def _of_entry_point(point: EntryPoint) -> list[Tool]:
    origin = f"entry point {point.name} ({point.value})"
    with loading(origin, "mend or uninstall the package that registers it"):
        loaded = point.load()
    return _tools_in(loaded, origin)


def _of_spec(spec: str) -> list[Tool]:
    module_name, _, name = spec.partition(":")
    origin = f"module {module_name}"
    with loading(origin, "mend it, or name another with --tools"):
        module = _module(module_name)
    if not name:
        return _tools_in(module, origin)
    if not hasattr(module, name):
        raise ConfigError(f"{origin} has no {name}", hint="name a function of it, or only it")
    return _tools_in(getattr(module, name), origin)


@contextmanager
def loading(origin: str, hint: str) -> Iterator[None]:
    try:
        yield
    except ConfigError:
        raise
    except (Exception, SystemExit) as exc:  # a foreign module may raise anything on import
        message = f"{origin} cannot be loaded: {type(exc).__name__}: {exc}"
        raise ConfigError(message, hint=hint) from exc


def object_of(spec: str) -> Any:
    """What `module:name` or `path/to/file.py:name` names. Raises whatever its import raises."""
    module_name, _, name = spec.partition(":")
    return getattr(_module(module_name), name)


def _module(named: str) -> ModuleType:
    return _file(named) if is_module_path(named) else importlib.import_module(named)


def _file(named: str) -> ModuleType:
    """Loaded once a process, as a module of its own; what lies beside it can be imported."""
    path = Path(named)
    name = f"unified_flow_tools_{sha256(str(path).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _tools_in(loaded: Any, origin: str) -> list[Tool]:
    """A tool, a function, several of them, or what a module offers."""
    if isinstance(loaded, ModuleType):
        found = _tools_of_module(loaded)
    else:
        found = list(loaded) if isinstance(loaded, list | tuple) else [loaded]
    if not found:
        raise ConfigError(f"{origin} holds no tool", hint="define a typed function in it")
    return [_as_tool(each, origin) for each in found]


def _tools_of_module(module: ModuleType) -> list[Any]:
    """What is marked with `@tool`; if nothing is, the public functions that it defines itself."""
    values = list(vars(module).items())
    marked = [v for _, v in values if isinstance(v, Tool) or is_marked(v)]
    if marked:
        return list({id(value): value for value in marked}.values())  # under several names once
    public = getattr(module, "__all__", None)
    return [
        value
        for name, value in values
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and (name in public if public is not None else not name.startswith("_"))
    ]


def _as_tool(value: Any, origin: str) -> Tool:
    if isinstance(value, Tool):
        return replace(value, run=partial(_run_in_background, value))
    if inspect.isroutine(value):
        return from_function(value, source=origin)
    raise ConfigError(
        f"{origin}: {type(value).__name__} is no tool", hint="a tool is a function, or a Tool"
    )


async def _run_in_background(tool: Tool, args: BaseModel) -> ToolOutput:
    return await await_in_background(tool.name, partial(tool.run, args))
