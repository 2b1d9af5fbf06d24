"""A person's own tools: entry points of installed packages, and modules that somebody names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from unified_flow.config.paths import is_module_path
from unified_flow.errors import ConfigError
from unified_flow.tools import Tool
from unified_flow.tools.functions import (
    await_in_background,
    from_function,
    is_marked,
    written_to_stderr,
)

GROUP = "unified_flow.tools"
OUR_PACKAGES = frozenset({"unified_flow", "interventions", "monitor"})


def installed_tools() -> list[Tool]:
    """The tools of every entry point in the group `unified_flow.tools`. Raises ConfigError."""
    found: list[Tool] = []
    for point in _entry_points(tuple(sys.path)):
        origin = f"entry point {point.name} ({point.value})"
        with _loading(origin, "mend or uninstall the package that registers it"):
            loaded = point.load()
        found += _tools_in(loaded, origin)
    return found


@cache
def _entry_points(path: tuple[str, ...]) -> list[EntryPoint]:
    """Looked up once: it reads a file of every installed package."""
    return sorted(entry_points(group=GROUP), key=lambda each: each.name)


class ToolModules:
    """What `module`, `module:name` and `path/to/file.py[:name]` name, as the files are now: these
    modules, and those beside them that they import."""

    def __init__(self, specs: Sequence[str]) -> None:
        self._specs = tuple(specs)
        self._changed_at: dict[Path, int] | None = None  # None: not loaded
        self._tools: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """The same ones until a file changes. Raises ConfigError."""
        if not self._specs or self._changed_at == self._files():
            return self._tools
        if self._changed_at is not None:
            for name in {name for spec in self._specs for name in _beside(spec)}:
                del sys.modules[name]
            importlib.invalidate_caches()
        self._changed_at = {}  # what fails is loaded anew
        self._tools = tuple(tool for spec in self._specs for tool in _of_spec(spec))
        self._changed_at = self._files()
        return self._tools

    def digests(self) -> dict[str, str]:
        """A digest of the files of each module, 16 hex digits."""
        return {
            spec: sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()[:16]
            for spec in self._specs
            if (files := {path for path in _beside(spec).values() if path.is_file()})
        }

    def _files(self) -> dict[Path, int]:
        files = {path for spec in self._specs for path in _beside(spec).values()}
        return {path: path.stat().st_mtime_ns if path.is_file() else 0 for path in files}


def _beside(spec: str) -> dict[str, Path]:
    """The modules that are loaded from where that one lies, by name, with their files."""
    named = spec.partition(":")[0]
    main = Path(named) if is_module_path(named) else _file_of(sys.modules.get(named))
    if main is None:
        return {}
    folder = str(main.parent)
    return {
        name: Path(file)
        for name, module in list(sys.modules.items())
        if isinstance(file := getattr(module, "__file__", None), str)
        and _lies_in(file, folder)
        and name.partition(".")[0] not in OUR_PACKAGES
        and name != "__main__"
    }


@cache
def _lies_in(file: str, folder: str) -> bool:
    """Kept, for every turn asks it of every module that is loaded."""
    path = Path(file)
    return path.is_relative_to(folder) and "site-packages" not in path.parts


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) else None


def _of_spec(spec: str) -> list[Tool]:
    module_name, _, name = spec.partition(":")
    origin = f"module {module_name}"
    with _loading(origin, "mend it, or name another with --tools"):
        is_file = is_module_path(module_name)
        module = _file(module_name) if is_file else importlib.import_module(module_name)
    if not name:
        return _tools_in(module, origin)
    if not hasattr(module, name):
        raise ConfigError(f"{origin} has no {name}", hint="name a function of it, or only it")
    return _tools_in(getattr(module, name), origin)


@contextmanager
def _loading(origin: str, hint: str) -> Iterator[None]:
    try:
        with written_to_stderr():
            yield
    except ConfigError:
        raise
    except (Exception, SystemExit) as exc:  # a foreign module may raise anything on import
        message = f"{origin} cannot be loaded: {type(exc).__name__}: {exc}"
        raise ConfigError(message, hint=hint) from exc


def _file(named: str) -> ModuleType:
    """A module of its own; what lies beside it can be imported."""
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
        raise ConfigError(
            f"{origin} holds no tool", hint="define a typed function with a docstring in it"
        )
    return [_as_tool(each, origin) for each in found]


def _tools_of_module(module: ModuleType) -> list[Any]:
    """What is marked with `@tool`; if nothing is, the public functions that it defines itself and
    documents: a helper has no docstring, or is private."""
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
        and inspect.getdoc(value)
        and (name in public if public is not None else not name.startswith("_"))
    ]


def _as_tool(value: Any, origin: str) -> Tool:
    if isinstance(value, Tool):
        return replace(
            value, run=lambda args: await_in_background(value.name, partial(value.run, args))
        )
    if inspect.isroutine(value):
        return from_function(value, source=origin)
    raise ConfigError(
        f"{origin}: {type(value).__name__} is no tool", hint="a tool is a function, or a Tool"
    )
