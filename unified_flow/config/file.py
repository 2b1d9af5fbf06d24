"""The file of settings: `unified_flow.toml`, else `[tool.unified_flow]` of `pyproject.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from unified_flow.errors import ConfigError

FILE = "unified_flow.toml"
NOT_OURS = ("queue", "notifications", "retention")  # tables that interventions/settings.py reads


def read_tables(home: Path) -> tuple[Path | None, dict[str, Any]]:
    """The file that rules `home`, if there is one, and what is set in it, the queue's tables
    among it. Raises ConfigError."""
    for path, keys in ((home / FILE, ()), (home / "pyproject.toml", ("tool", "unified_flow"))):
        data = _table(path, keys)
        if data is not None:
            return path, data
    return None, {}


def _table(path: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """The table under `keys`, or None. Raises ConfigError for what is meant for us and broken."""
    try:
        text = path.read_text(encoding="utf-8")
        data: Any = tomllib.loads(text)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} cannot be read: {exc}", hint="make it readable") from exc
    except tomllib.TOMLDecodeError as exc:
        if keys and ".".join(keys) not in text:
            return None  # somebody else's file, and nothing in it for us
        raise ConfigError(f"{path} cannot be read: {exc}", hint="mend that line") from exc
    for number, key in enumerate(keys, 1):
        if key not in data:
            return None
        data = data[key]
        if not isinstance(data, dict):
            raise ConfigError(f"{path}: [{'.'.join(keys[:number])}] must be a table")
    tables: dict[str, Any] = data
    if isinstance(model := tables.get("vectors"), str):  # one line for the whole table
        tables["vectors"] = {"model": model}
    return tables
