"""The file of settings: `unified_flow.toml`, else `[tool.unified_flow]` of `pyproject.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from unified_flow.errors import ConfigError
from unified_flow.retrieval.roots import is_address

FILE = "unified_flow.toml"
NOT_OURS = ("queue", "notifications")  # tables that interventions/settings.py reads


def read_file(home: Path) -> tuple[Path | None, dict[str, Any]]:
    """The file that rules `home`, if there is one, and our settings in it. Raises ConfigError."""
    path, data = read_tables(home)
    own = {key: value for key, value in data.items() if key not in NOT_OURS}
    return path, _resolve(own, home)


def read_tables(home: Path) -> tuple[Path | None, dict[str, Any]]:
    """As `read_file`, with the queue's tables and every value as it stands there."""
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
    return tables


def _resolve(data: dict[str, Any], home: Path) -> dict[str, Any]:
    """Paths in the file are relative to the file, not to where the command runs."""
    resolved = dict(data)
    for key in ("docs", "roots"):
        if isinstance(resolved.get(key), list):
            resolved[key] = _beside(home, resolved[key])
    if isinstance(named := resolved.get("collections"), dict):
        resolved["collections"] = {
            name: table | {"docs": _beside(home, table["docs"])}
            if isinstance(table, dict) and isinstance(table.get("docs"), list)
            else table
            for name, table in named.items()
        }
    for name in ("local", "vectors"):
        table = resolved.get(name)
        if isinstance(table, dict) and isinstance(table.get("path"), str):
            resolved[name] = table | {"path": str(home / table["path"])}
    if isinstance(models := resolved.get("models"), dict):
        resolved["models"] = {
            name: table | {"api_key_file": str(home / table["api_key_file"])}
            if isinstance(table, dict) and isinstance(table.get("api_key_file"), str)
            else table
            for name, table in models.items()
        }
    if isinstance(serve := resolved.get("serve"), dict):
        files = {key: serve.get(key) for key in ("token_file", "triage_token_file")}
        found = {key: str(home / file) for key, file in files.items() if isinstance(file, str)}
        resolved["serve"] = serve | found
    for key in ("recipes", "api_key_file"):
        if isinstance(resolved.get(key), str):
            resolved[key] = str(home / resolved[key])
    return resolved


def _beside(home: Path, items: list[Any]) -> list[Any]:
    return [item if is_address(item) else str(home / item) for item in items]
