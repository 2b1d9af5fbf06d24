"""The queue's settings: environment over `[interventions]` in `unified_flow.toml` over defaults."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.errors import QueueError
from interventions.home import SETTINGS_FILE, find_home

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue

_VARIABLE_PREFIX = "INTERVENTIONS_"


class SettingsError(QueueError):
    """A setting that cannot be used (usage: exit code 2)."""


@dataclass(frozen=True)
class Settings:
    """`notify_url` is for Apprise, `notify_command` gets the JSON on stdin; both empty: none."""

    max_size: int = 50
    max_per_session: int = 5
    max_per_error_type: int = 10
    lock_timeout_s: float = 5.0
    refuse_when_full: bool = False
    notify_url: str = ""
    notify_command: str = ""
    notify_timeout_s: float = 10.0


def load_settings(home: Path) -> Settings:
    settings = Settings()
    for name, value in _table(home / SETTINGS_FILE).items():
        settings = _set(settings, name, value, str(home / SETTINGS_FILE))
    for field in fields(Settings):
        variable = _VARIABLE_PREFIX + field.name.upper()
        if variable in os.environ:
            settings = _set(settings, field.name, os.environ[variable], variable)
    return settings


def queue_at(home: Path | str | None = None) -> InterventionQueue:
    """The queue of a home with the settings of that home."""
    from interventions.queue import InterventionQueue

    place = find_home(home)
    settings = load_settings(place)
    notify = None
    if settings.notify_url or settings.notify_command:
        from interventions.notify import notifier

        notify = notifier(settings)
    return InterventionQueue(
        place,
        max_size=settings.max_size,
        max_per_session=settings.max_per_session,
        max_per_error_type=settings.max_per_error_type,
        lock_timeout_s=settings.lock_timeout_s,
        after_put=notify,
    )


def _table(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    try:
        table = tomllib.loads(text).get("interventions", {})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: {error}", hint="mend the TOML") from error
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: [interventions] is not a table")
    return table


def _set(settings: Settings, name: str, value: Any, source: str) -> Settings:
    known = {field.name: type(getattr(settings, field.name)) for field in fields(Settings)}
    if name not in known:
        names = ", ".join(known)
        raise SettingsError(
            f"{source}: {name} is no setting of interventions", hint=f"known: {names}"
        )
    try:
        converted = _convert(value, known[name])
    except ValueError as error:
        kind = known[name].__name__
        raise SettingsError(f"{source}: {name} must be a {kind}, not {value!r}") from error
    if known[name] in (int, float) and converted <= 0:
        raise SettingsError(f"{source}: {name} must be more than 0, not {value!r}")
    changed: dict[str, Any] = {name: converted}
    return replace(settings, **changed)


def _convert(value: Any, kind: type) -> Any:
    if kind is bool:
        if isinstance(value, bool):
            return value
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if str(value).lower() not in words:
            raise ValueError(value)
        return words[str(value).lower()]
    if isinstance(value, bool) or ((kind is str) != isinstance(value, str) and kind is str):
        raise ValueError(value)
    return kind(value)
