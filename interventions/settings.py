"""The queue's settings, shared with the flow: environment over the file over the defaults.

The file is `unified_flow.toml` (tables `[queue]` and `[notifications]`), or `pyproject.toml` with
the same under `[tool.unified_flow]`; the environment is `UNIFIED_FLOW_QUEUE__MAX_SIZE` and so on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from interventions.entry import MOST
from interventions.errors import ArgumentError, SettingsError, expect
from interventions.home import PROJECT_FILE, settings_files

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def described(default: Any, description: str) -> Any:
    """A field whose meaning `unified-flow config` shows."""
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class Limits:
    """How many open entries there may be."""

    max_size: int = described(50, "interventions in the queue at most")
    max_per_session: int = described(5, "open failures of one session at most")
    max_per_error_type: int = described(10, "open failures of one error type at most")
    max_escalations_per_session: int = described(20, "open escalations of one session at most")

    def __post_init__(self) -> None:
        for each in fields(Limits):
            value = getattr(self, each.name)
            expect(each.name, value, int)
            if not 1 <= value < MOST:
                raise ArgumentError(f"{each.name} must be at least 1", argument=each.name)


@dataclass(frozen=True)
class QueueSettings(Limits):
    lock_timeout_s: float = described(5.0, "seconds to wait for the queue's lock")
    refuse_when_full: bool = described(False, "begin no turn while the queue is full")


@dataclass(frozen=True)
class NotificationSettings:
    """With neither `url` nor `command` there are no notifications."""

    url: str = described("", "where Apprise sends a message (extra: notify)")
    command: str = described("", "command that gets the intervention as JSON on its input")
    timeout_s: float = described(10.0, "seconds for one notification")


@dataclass(frozen=True)
class RetentionSettings:
    """What `interventions doctor` lets go of (the archive), and `turns prune` (the rest). 0 keeps
    everything, where it is the default. A MB is 1,000,000 bytes."""

    archive_days: float = described(0.0, "days that a closed intervention stays in the archive")
    archive_entries: int = described(0, "closed interventions that stay in the archive")
    turns_days: float = described(30.0, "days that a finished turn stays")
    turns_mb: float = described(0.0, "MB that turns take at most; the oldest finished ones go")
    sessions_days: float = described(0.0, "days that a session stays after its last answer")
    logs_days: float = described(0.0, "days that error logs and the query log stay")
    logs_mb: float = described(0.0, "MB that those logs take at most; the oldest days go")


@dataclass(frozen=True)
class MonitorSettings:
    theme: str = described("dark", "colours of the monitor: dark, light or a theme of Textual")
    bell: bool = described(True, "ring when a critical failure comes")
    keys: str = described("", "other keys, by the ids of the help: act.resolve=x move.down=n,down")


@dataclass(frozen=True)
class SharedSettings:
    """Many machines on one PostgreSQL (architecture/shared-mode.md), where a variable is named. 0
    means: no bound."""

    database_url_env: str = described("", "variable with the URL of the PostgreSQL database")
    turns_per_worker: int = described(4, "turns at once in each worker")
    turns_at_once: int = described(0, "turns at once in all workers together")
    turns_per_user: int = described(0, "turns at once of one user")
    max_queued: int = described(10_000, "turns that wait for a worker; more get 503")
    polling_s: float = described(0.2, "seconds between two looks of a worker for turns")


TABLE_OF: dict[type, str] = {QueueSettings: "queue", NotificationSettings: "notifications"}
TABLE_OF |= {RetentionSettings: "retention", MonitorSettings: "monitor", SharedSettings: "shared"}
_Table = TypeVar("_Table", bound="DataclassInstance")


def settings_of(home: Path, kind: type[_Table]) -> _Table:
    """One table of the settings of `home`. Raises SettingsError."""
    table, settings = TABLE_OF[kind], kind()
    path, tables = read_tables(home)
    values = tables.get(table, {})
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: {table} is not a table")
    for name, value in values.items():
        settings = _set(settings, name, value, f"{path}: [{table}] {name}")
    for each in fields(settings):
        variable = f"UNIFIED_FLOW_{table}__{each.name}".upper()
        if variable in os.environ:
            settings = _set(settings, each.name, os.environ[variable], variable)
    return settings


def read_tables(home: Path) -> tuple[Path | None, dict[str, Any]]:
    """The file that rules `home`, if there is one, and all that is set in it. Raises SettingsError
    for what is meant for us and broken."""
    for path in settings_files(home):
        keys = ("tool", "unified_flow") if path.name == PROJECT_FILE else ()
        # Most homes have no file, and then nothing need be loaded to read one.
        import tomllib

        data = b""
        try:
            data = path.read_bytes()
            found: Any = tomllib.loads(data.decode())
        except (OSError, ValueError) as error:
            if keys and ".".join(keys).encode() not in data:
                continue  # somebody else's file, and nothing in it for us
            unreadable = isinstance(error, OSError | UnicodeError)
            hint = "make it readable" if unreadable else "mend that line"
            raise SettingsError(f"{path} cannot be read: {error}", hint=hint) from error
        for key in keys:
            found = found.get(key, {}) if isinstance(found, dict) else found
        if not isinstance(found, dict):
            raise SettingsError(f"{path}: [{'.'.join(keys)}] must be a table")
        if found or not keys:
            return path, found
    return None, {}


def _set(settings: _Table, name: str, value: Any, source: str) -> _Table:
    from pydantic import Field, TypeAdapter, ValidationError  # late: most homes set nothing

    defaults = {each.name: each.default for each in fields(settings)}
    if name not in defaults:
        hint = f"known: {', '.join(defaults)}; what is in no table goes above the first [table]"
        raise SettingsError(f"{source} is no setting", hint=hint)
    default = defaults[name]
    kind: Any = type(default)
    if kind in (int, float):
        least = Field(gt=0, allow_inf_nan=False) if default else Field(ge=0, allow_inf_nan=False)
        kind = Annotated[kind, least]
    try:
        converted = TypeAdapter(kind).validate_python(value, strict=not isinstance(value, str))
    except ValidationError as error:
        raise SettingsError(f"{source}: {error.errors()[0]['msg']}, not {value!r}") from error
    changed: dict[str, Any] = {name: converted}
    return replace(settings, **changed)
