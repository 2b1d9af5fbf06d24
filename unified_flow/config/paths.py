"""What is a path among the settings, and where it begins: in the file, beside the file.

The type of a setting says that it is one. A flag or a variable of the environment is relative to
where the command runs, as everywhere.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from unified_flow.config.document_roots import is_address

LOCAL_PREFIX = "local:"
GGUF = ".gguf"


def beside(home: Path, path: str) -> str:
    """`~` is the user's own folder; opening the path of an unknown user fails later."""
    try:
        return str(home / Path(path).expanduser())
    except RuntimeError:
        return str(home / path)


@dataclass(frozen=True)
class _Holds:
    """Marks the type of a text that may hold a path: what it is to be for a file in `home`."""

    resolve: Callable[[Path, str], str]


def located_module(base: Path, spec: str) -> str:
    """The same tools whatever the working directory: a file beside `base` by its whole path."""
    module, colon, name = spec.partition(":")
    if is_module_path(module):
        path = base / Path(module).expanduser()
    else:
        path = base / f"{module.replace('.', '/')}.py"
        if _is_installed(module) or not path.is_file():
            return spec
    return f"{path.absolute()}{colon}{name}"


def is_module_path(module: str) -> bool:
    return module.endswith(".py") or "/" in module


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _model(home: Path, name: str) -> str:
    file = name.removeprefix(LOCAL_PREFIX)
    return f"{LOCAL_PREFIX}{beside(home, file)}" if file not in ("", name) else name


ModuleSpec = Annotated[str, _Holds(located_module)]
"""`module`, `module:name` or `file.py:name`."""
ModelName = Annotated[str, _Holds(_model)]
"""A name, or `local:` and a file."""
EmbeddingModel = Annotated[
    str, _Holds(lambda home, name: beside(home, name) if name.endswith(GGUF) else name)
]
"""A name, or a .gguf file."""
Program = Annotated[str, _Holds(lambda home, name: beside(home, name) if "/" in name else name)]
"""A program by its name, or by its path if it has a slash."""


def with_absolute_paths(value: Any, kind: Any, home: Path) -> Any:
    """A value as it stands in the file of `home`, of a setting of the type `kind`. What does not
    fit the type comes back as it is, for pydantic to refuse."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, dict):
        return value | {
            name: with_absolute_paths(
                value[name], Annotated[field.annotation, *field.metadata, None], home
            )
            for name, field in kind.model_fields.items()
            if name in value
        }
    arguments = get_args(kind)
    if kind is Path and isinstance(value, str) and not is_address(value):
        return beside(home, value)
    origin = get_origin(kind)
    if origin is Annotated:
        for mark in arguments[1:]:
            if isinstance(mark, _Holds) and isinstance(value, str):
                return mark.resolve(home, value)
        return with_absolute_paths(value, arguments[0], home)
    if origin is list and isinstance(value, list):
        return [with_absolute_paths(item, arguments[0], home) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: with_absolute_paths(item, arguments[1], home) for key, item in value.items()}
    if origin in (Union, UnionType):
        found = (with_absolute_paths(value, each, home) for each in arguments)
        return next((each for each in found if each != value), value)
    return value
