"""A person's own tools: entry points of installed packages, and modules that somebody names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
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
OUR_PACKAGES = frozenset({"unified_flow", "interventions", "monitor"})


def installed_tools() -> list[Tool]:
    """Of every entry point in the group `unified_flow.tools`. Raises ConfigError."""
    found: list[Tool] = []
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        found += _of_entry_point(point)
    return found


class ToolModules:
    """What `module`, `module:name` and `path/to/file.py[:name]` name, as the files are now."""

    def __init__(self, specs: Sequence[str]) -> None:
        self._specs = tuple(specs)
        self._modules: list[ModuleType] = []
        self._tools: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """The same ones until a file changes. Raises ConfigError."""
        modules = [_loaded(spec.partition(":")[0]) for spec in self._specs]
        if modules != self._modules:
            self._tools = tuple(tool for spec in self._specs for tool in _of_spec(spec))
            self._modules = modules
        return self._tools

    def digests(self) -> dict[str, str]:
        """Of the files of each module, 16 hex digits."""
        found = {}
        for spec in self._specs:
            files = sorted(path for path, _ in _stamps.get(spec.partition(":")[0], {}).values())
            content = b"".join(path.read_bytes() for path in files if path.is_file())
            found[spec] = sha256(content).hexdigest()[:16]
        return found


def _of_entry_point(point: EntryPoint) -> list[Tool]:
    origin = f"entry point {point.name} ({point.value})"
    with loading(origin, "mend or uninstall the package that registers it"):
        loaded = point.load()
    return _tools_in(loaded, origin)


def _of_spec(spec: str) -> list[Tool]:
    module_name, _, name = spec.partition(":")
    origin = f"module {module_name}"
    module = _loaded(module_name)
    if not name:
        return _tools_in(module, origin)
    if not hasattr(module, name):
        raise ConfigError(f"{origin} has no {name}", hint="name a function of it, or only it")
    return _tools_in(getattr(module, name), origin)


@contextmanager
def loading(origin: str, hint: str) -> Iterator[None]:
    """What is printed meanwhile goes to stderr: stdout is for answers."""
    try:
        with redirect_stdout(sys.stderr):
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


_stamps: dict[str, dict[str, tuple[Path, int]]] = {}
"""By what names a module: it and those beside it that it imports, with file and time of change."""


def _loaded(named: str) -> ModuleType:
    """The module as its files are now. Raises ConfigError."""
    known = _stamps.get(named, {})
    if any(_changed_at(path) != at for path, at in known.values()):
        for name in known:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        with loading(f"module {named}", "mend it, or name another with --tools"):
            module = _module(named)
    finally:
        if new := _beside(named, sys.modules.keys() - before):
            _stamps[named] = {name: (path, _changed_at(path)) for name, path in new.items()}
    module.__dict__.setdefault("print", _print_to_stderr)
    return module


def _beside(named: str, modules: Iterable[str]) -> dict[str, Path]:
    """The files of those that lie where the module lies, and are a person's own."""
    found = {m: Path(getattr(sys.modules[m], "__file__", None) or "") for m in modules}
    main = found.get(named)
    folder = Path(named).parent if is_module_path(named) else main.parent if main else None
    return {
        name: path
        for name, path in found.items()
        if folder is not None
        and path.is_relative_to(folder)
        and "site-packages" not in path.parts
        and name.partition(".")[0] not in OUR_PACKAGES
    }


def _changed_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


def _print_to_stderr(*values: object, file: Any = None, **options: Any) -> None:
    print(*values, file=file or sys.stderr, **options)


def _module(named: str) -> ModuleType:
    return _file(named) if is_module_path(named) else importlib.import_module(named)


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
        return replace(value, run=partial(_run_in_background, value))
    if inspect.isroutine(value):
        return from_function(value, source=origin)
    raise ConfigError(
        f"{origin}: {type(value).__name__} is no tool", hint="a tool is a function, or a Tool"
    )


async def _run_in_background(tool: Tool, args: BaseModel) -> ToolOutput:
    return await await_in_background(tool.name, partial(tool.run, args))
