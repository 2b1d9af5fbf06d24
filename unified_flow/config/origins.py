"""What every setting is now, and where that came from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interventions.secrets.redaction import redact
from interventions.settings import notification_settings, queue_settings, retention_settings
from unified_flow.config.file import FILE, read_tables
from unified_flow.config.settings import Settings, load, variable_set
from unified_flow.config.settings_reference import Known, every_setting

HIDDEN = "[redacted]"


@dataclass(frozen=True)
class Setting:
    """`value` is JSON-able and holds no secret; `source` is `default`, a file or a variable."""

    key: str
    value: Any
    source: str
    description: str


def settings_of(home: Path) -> list[Setting]:
    """Raises ConfigError or SettingsError for a setting that is wrong."""
    settings = load(home)
    now = settings.model_dump(mode="json") | {
        "queue": asdict(queue_settings(home)),
        "notifications": asdict(notification_settings(home)),
        "retention": asdict(retention_settings(home)),
    }
    path, file = read_tables(home)
    where = str(path) if path is not None else FILE
    return [
        Setting(".".join(known.path), _shown(known.path, value), _source(known, file, where), text)
        for known in _with_named(settings)
        for value, text in [(_at(now, known.path), known.description)]
    ]


def _with_named(settings: Settings) -> Iterator[Known]:
    """A table that takes any name stands for the settings of those that are there."""
    for known in every_setting():
        if known.named is None:
            yield known
            continue
        for name in _at(settings.model_dump(), known.path):
            for field, info in known.named.model_fields.items():
                yield Known((*known.path, name, field), None, info.description or "")


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def _source(known: Known, file: dict[str, Any], where: str) -> str:
    for end in range(len(known.path), 0, -1):
        if (variable := variable_set(known.path[:end])) is not None:
            return variable
    try:
        _at(file, known.path)
    except (KeyError, TypeError):
        return "default"
    return where


def _shown(path: tuple[str, ...], value: Any) -> Any:
    """An address may hold a password; of a key only the name of its variable is a setting."""
    if path[-1].endswith("_env") and isinstance(value, str):
        return f"{value} ({'set' if os.environ.get(value) else 'not set'})"
    if path == ("notifications", "url") and value:
        return HIDDEN  # an Apprise address is made of tokens
    if path[0] == "mcp" and path[-1] == "env":
        return dict.fromkeys(value, HIDDEN)  # no secrets belong there, and people put them there
    if path[0] == "mcp" and path[-1] == "url" and value:
        value, mark, _ = value.partition("?")
        return redact(value) + (f"{mark}{HIDDEN}" if mark else "")
    return redact(value)
