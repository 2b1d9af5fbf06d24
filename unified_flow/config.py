"""Settings: flag > environment > unified_flow.toml or [tool.unified_flow] > default.

An environment variable is UNIFIED_FLOW_<KEY>, with two underscores between levels
(UNIFIED_FLOW_LIMITS__MODEL_CALLS=10). Durations are seconds. Secrets are never settings:
a setting names the variable or the file that holds one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from unified_flow.errors import ConfigError

FILE = "unified_flow.toml"
EMBEDDED = "embedded"
NOT_OURS = ("queue", "notifications")  # tables that interventions/settings.py reads


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(Table):
    """One OpenAI-compatible endpoint. `timeout_s` bounds a whole call."""

    model: str
    base_url: str
    api_key_env: str = "OPENAI_API_KEY"
    api_key_file: Path | None = None
    timeout_s: float = Field(default=60.0, gt=0)


class Roles(Table):
    """Which model plays which role: `embedded` or the name of a [models.*] table."""

    reflex: str | None = None
    mind: str | None = None
    voice: str | None = None


class Limits(Table):
    """Loop limits of one turn (error-handling-architecture.md, Validation Loop Limits)."""

    planning_loop: int = Field(default=5, ge=1)
    retry: int = Field(default=1, ge=0)
    revise: int = Field(default=2, ge=0)
    model_calls: int = Field(default=25, ge=1)


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="UNIFIED_FLOW_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    docs: list[Path] = []
    model: str = EMBEDDED
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    api_key_file: Path | None = None
    timeout_s: float = Field(default=60.0, gt=0)
    models: dict[str, ModelSettings] = {}
    roles: Roles = Roles()
    policy: Literal["fail_fast"] = "fail_fast"
    language: Literal["en", "sv"] = "en"
    roots: list[Path] = Field(
        default=[], description="folders that file tools may read; docs if none"
    )
    recipes: Path | None = None
    limits: Limits = Limits()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The file arrives under one private key, so that it can rank below the environment.
        flags = dict(init_settings())
        file = flags.pop("_file", {})
        return (
            InitSettingsSource(settings_cls, flags),
            env_settings,
            InitSettingsSource(settings_cls, file),
        )

    def check_models(self, present: Collection[str]) -> None:
        """Raises ConfigError for a model or a role that is neither present nor served, and for a
        server that nobody would ask: the embedded model never stands in for another one."""
        roles = (self.roles.reflex, self.roles.mind, self.roles.voice)
        named = {self.model, *(name for name in roles if name is not None)}
        for name in named - set(present):
            self.endpoint(name)
        if self.base_url is not None and named == {EMBEDDED}:
            raise ConfigError(
                f"base_url is {self.base_url}, and no model of that server is named",
                hint="name one with --model NAME",
            )

    def endpoint(self, name: str) -> ModelSettings:
        """The endpoint that `name` stands for: a [models.*] table, or a model of base_url."""
        if name in self.models:
            return self.models[name]
        if self.base_url is None:
            known = [EMBEDDED, *self.models]
            raise ConfigError(
                f"model {name!r} is not configured (known: {', '.join(known)})",
                hint=f"name its server with --base-url URL, or add [models.{name}] to {FILE}",
            )
        return ModelSettings(
            model=name,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            api_key_file=self.api_key_file,
            timeout_s=self.timeout_s,
        )


def load(home: Path, **flags: Any) -> Settings:
    """Settings of `home`. A flag that is None counts as not given. Raises ConfigError."""
    where, file = _read_file(home)
    given = {key: value for key, value in flags.items() if value is not None}
    try:
        return Settings(**{"_file": file, **given})
    except ValidationError as exc:
        raise _explain(exc, where) from exc
    except SettingsError as exc:
        raise ConfigError(f"an environment variable UNIFIED_FLOW_… is wrong: {exc}") from exc


def _read_file(home: Path) -> tuple[Path | None, dict[str, Any]]:
    own = _table(home / FILE, ())
    if own is not None:
        return home / FILE, _resolve(own, home)
    shared = _table(home / "pyproject.toml", ("tool", "unified_flow"))
    if shared is not None:
        return home / "pyproject.toml", _resolve(shared, home)
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
    return {key: value for key, value in data.items() if key not in NOT_OURS}


def _resolve(data: dict[str, Any], home: Path) -> dict[str, Any]:
    """Paths in the file are relative to the file, not to where the command runs."""
    resolved = dict(data)
    for key in ("docs", "roots"):
        if isinstance(resolved.get(key), list):
            resolved[key] = [str(home / item) for item in resolved[key]]
    for key in ("recipes", "api_key_file"):
        if isinstance(resolved.get(key), str):
            resolved[key] = str(home / resolved[key])
    return resolved


def _explain(exc: ValidationError, where: Path | None) -> ConfigError:
    """The first mistake, with the setting's name and, for a typo, the name that was meant."""
    first = exc.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    source = f" (in {where}, a flag or the environment)" if where else ""
    if first["type"] == "extra_forbidden":
        close = get_close_matches(str(first["loc"][-1]), _known(first["loc"]), n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return ConfigError(f"unknown setting {key!r}{source}{meant}", hint="mend the name")
    return ConfigError(f"setting {key!r} is wrong: {first['msg'].lower()}{source}")


def _known(loc: tuple[int | str, ...]) -> list[str]:
    tables: dict[str, type[BaseModel]] = {"roles": Roles, "limits": Limits}
    table = tables.get(str(loc[0]), ModelSettings) if len(loc) > 1 else Settings
    return list(table.model_fields)
