"""Settings: flag > environment > unified_flow.toml or [tool.unified_flow] > default.

An environment variable is UNIFIED_FLOW_<KEY>, with two underscores between levels
(UNIFIED_FLOW_LIMITS__MODEL_CALLS=10). Durations are seconds. Secrets are never settings:
a setting names the variable or the file that holds one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from interventions.home import HOME_VARIABLE
from unified_flow.config_file import FILE, NOT_OURS, read_file
from unified_flow.errors import ConfigError
from unified_flow.guardrails.settings import GuardrailSettings
from unified_flow.retrieval.roots import DEFAULT_COLLECTION, DocumentRoot
from unified_flow.web.addresses import parse_allowed

EMBEDDED = "embedded"
LOCAL = "local"
LOCAL_PREFIX = "local:"
PREFIX = "UNIFIED_FLOW_"
NESTED = "__"


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(Table):
    """One OpenAI-compatible endpoint. `timeout_s` bounds a whole call."""

    model: str = Field(description="the server's own name for the model")
    base_url: str = Field(description="OpenAI-compatible endpoint, with /v1")
    api_key_env: str = Field(
        default="OPENAI_API_KEY", description="variable that holds the server's key"
    )
    api_key_file: Path | None = Field(default=None, description="file that holds the server's key")
    timeout_s: float = Field(default=60.0, gt=0, description="seconds for one call as a whole")


class Roles(Table):
    """Which model plays which role: `embedded` or the name of a [models.*] table."""

    reflex: str | None = Field(default=None, description="phases 0 and 1; else `model`")
    mind: str | None = Field(default=None, description="phases 2, 3, 4 and 6; else `model`")
    voice: str | None = Field(default=None, description="phase 5, which answers; else `model`")


class NamedCollection(Table):
    """An index of its own, which --collection chooses."""

    docs: list[DocumentRoot] = Field(default=[], description="what this collection holds")


class Limits(Table):
    """Loop limits of one turn (error-handling-architecture.md, Validation Loop Limits)."""

    planning_loop: int = Field(default=5, ge=1, description="rounds of planner and coordinator")
    retry: int = Field(default=1, ge=0, description="times that validation may ask to plan anew")
    revise: int = Field(default=2, ge=0, description="times that it may ask for other words")
    model_calls: int = Field(default=25, ge=1, description="calls of a model in one turn")


class GracefulSettings(Table):
    """The policy `graceful`: its time-outs, and what is off until somebody wants it
    (architecture/error-handling.md)."""

    search_timeout_s: float = Field(default=1.5, gt=0, description="seconds for one search")
    generation_timeout_s: float = Field(
        default=3.0, gt=0, description="seconds for one call of a model"
    )
    pipeline_timeout_s: float = Field(
        default=5.0, gt=0, description="seconds for a turn as a whole, from question to answer"
    )
    retries: int = Field(
        default=0, ge=0, description="further tries of a phase whose failure may pass by itself"
    )
    backoff_s: float = Field(
        default=0.2, ge=0, description="seconds before the first of them; doubles with each"
    )
    failover: str | None = Field(
        default=None, description="the [models.*] table that is asked where another model failed"
    )
    breaker: bool = Field(
        default=False, description="ask a model no more for a while once it keeps failing"
    )
    breaker_failures: int = Field(default=5, ge=1, description="failures that open the breaker")
    breaker_window_s: float = Field(
        default=60.0, gt=0, description="seconds within which they must happen"
    )
    breaker_open_s: float = Field(
        default=30.0, gt=0, description="seconds until one call may try whether it is well again"
    )


class ToolSettings(Table):
    """A person's own tools, and which tools may write or use the network (architecture/tools.md).
    Patterns are like `memory.*`."""

    modules: list[str] = Field(
        default=[], description="`module`, `module:function` or `file.py` with tools of your own"
    )
    allow: list[str] = Field(
        default=["memory.create", "memory.update"],
        description="tools that may write or use the network unasked; replaces the default",
    )
    deny: list[str] = Field(default=[], description="tools that may never run; wins over all else")


class McpSettings(Table):
    """An MCP server: a command that is started, or an address. Secrets are named, not written."""

    command: str | None = Field(default=None, description="program to start (stdio)")
    args: list[str] = Field(default=[], description="its arguments")
    env: dict[str, str] = Field(default={}, description="variables for it; no secrets")
    env_from: list[str] = Field(
        default=[], description="variables that it gets from the environment, such as tokens"
    )
    url: str | None = Field(default=None, description="address of a running server (HTTP)")
    headers_env: dict[str, str] = Field(
        default={}, description="header: variable that holds its value"
    )
    start_timeout_s: float = Field(default=30.0, gt=0, description="seconds until it must answer")
    timeout_s: float = Field(default=60.0, gt=0, description="seconds for one call of a tool")
    trust_hints: bool = Field(
        default=False, description="believe it which of its tools only read, and allow those"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command or a url")
        return self


class ResearchSettings(Table):
    """Fetching web pages: for internet.research, and as documents (architecture/web.md)."""

    allow_private: list[str] = Field(
        default=[],
        description="`10.0.0.5`, `10.0.0.0/8`, `host:8080`: what may be fetched though not public",
    )
    ports: list[Annotated[int, Field(gt=0, lt=65536)]] = Field(
        default=[80, 443], description="ports that may be asked of any public host"
    )
    timeout_s: float = Field(default=20.0, gt=0, description="seconds for one page as a whole")
    max_bytes: int = Field(
        default=5 * 1024 * 1024, gt=0, description="of one page, counted when unpacked"
    )
    max_redirects: int = Field(default=5, ge=0, description="redirects that one page may take")

    @field_validator("allow_private")
    @classmethod
    def _entries(cls, entries: list[str]) -> list[str]:
        for entry in entries:
            parse_allowed(entry)
        return entries


class LocalSettings(Table):
    """A language model from a file, which llama.cpp serves (extra: local)."""

    path: Path | None = Field(default=None, description="the .gguf file that `model = local` means")
    context_tokens: int = Field(default=8192, ge=512, description="room for prompt and answer")
    start_timeout_s: float = Field(default=120.0, gt=0, description="seconds for loading it")


class ServeSettings(Table):
    """`unified-flow serve` (architecture/serving.md). Tokens are named, not written."""

    host: str = Field(
        default="127.0.0.1", description="address to listen on; any but loopback needs a token"
    )
    port: int = Field(default=8000, ge=0, lt=65536, description="0: any free one")
    token_env: str = Field(
        default="RAG_CLIENT_TOKEN", description="variable with the token that clients must send"
    )
    token_file: Path | None = Field(default=None, description="file with that token, instead")
    triage_token_env: str = Field(
        default="RAG_TRIAGE_TOKEN",
        description="variable with the token for /turns and /interventions; off without one",
    )
    triage_token_file: Path | None = Field(
        default=None, description="file with that token, instead"
    )
    allowed_hosts: list[str] = Field(
        default=[], description="names that requests may use; on loopback else only its own"
    )
    cors_origins: list[str] = Field(
        default=[], description="origins whose pages may call it from a browser"
    )
    trusted_proxies: list[str] = Field(
        default=[], description="addresses whose X-Forwarded-For is believed"
    )
    max_body_bytes: int = Field(default=262_144, gt=0, description="of one request")
    body_timeout_s: float = Field(
        default=10.0, gt=0, description="seconds within which a request must have arrived"
    )
    max_turns: int = Field(default=50, gt=0, description="turns at once; more get 429")
    rate_limit: str = Field(
        default="5/second",
        description="questions of one client per second, minute or hour; or off",
    )
    shutdown_grace_s: float = Field(
        default=5.0, ge=0, description="seconds that running turns get to end when it stops"
    )

    @field_validator("rate_limit")
    @classmethod
    def _rate(cls, text: str) -> str:
        if not re.fullmatch(r"off|[1-9]\d{0,8}/(second|minute|hour)", text):
            raise ValueError("a rate is like 5/second, 60/minute or off")
        return text


ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_nested_delimiter=NESTED,
        nested_model_default_partial_update=True,
    )

    docs: list[DocumentRoot] = Field(
        default=[], description="files, folders and web pages to answer from"
    )
    collection: str = Field(
        default=DEFAULT_COLLECTION, description="the index to answer from when none is named"
    )
    collections: dict[str, NamedCollection] = Field(
        default={}, description="more indexes, by the name that --collection uses"
    )
    model: str = Field(
        default=EMBEDDED,
        description="`embedded`, `local`, a [models.*] table, or a model of `base_url`",
    )
    base_url: str | None = Field(default=None, description="OpenAI-compatible endpoint, with /v1")
    api_key_env: str = Field(
        default="OPENAI_API_KEY", description="variable that holds the key of `base_url`"
    )
    api_key_file: Path | None = Field(
        default=None, description="file that holds the key of `base_url`, instead"
    )
    timeout_s: float = Field(default=60.0, gt=0, description="seconds for one call of a model")
    models: dict[str, ModelSettings] = Field(
        default={}, description="more endpoints, by the name that `model` and [roles] use"
    )
    roles: Roles = Roles()
    local: LocalSettings = LocalSettings()
    policy: Literal["fail_fast", "graceful"] = Field(
        default="fail_fast", description="what a failure does: `fail_fast` or `graceful`"
    )
    graceful: GracefulSettings = GracefulSettings()
    language: Literal["en", "sv"] = Field(
        default="en", description="of the messages to users when something fails"
    )
    roots: list[Path] = Field(
        default=[], description="folders that file tools may read; docs if none"
    )
    recipes: Path | None = Field(
        default=None, description="folder of recipes that replace the packaged ones; else recipes/"
    )
    limits: Limits = Limits()
    tools: ToolSettings = ToolSettings()
    research: ResearchSettings = ResearchSettings()
    guardrails: GuardrailSettings = GuardrailSettings()
    serve: ServeSettings = ServeSettings()
    mcp: dict[ServerName, McpSettings] = Field(
        default={}, description="MCP servers, whose tools are called NAME.tool"
    )

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
        if self.policy == "graceful" and self.graceful.failover is not None:
            named.add(self.graceful.failover)
        for name in named - set(present):
            if self.local_path(name) is None:
                self.endpoint(name)
        if self.base_url is not None and named == {EMBEDDED}:
            raise ConfigError(
                f"base_url is {self.base_url}, and no model of that server is named",
                hint="name one with --model NAME",
            )

    def local_path(self, name: str) -> Path | None:
        """The file of `local:/path/model.gguf`, or of `local`; None for any other model."""
        if name.startswith(LOCAL_PREFIX):
            return Path(name.removeprefix(LOCAL_PREFIX)).expanduser().absolute()
        if name != LOCAL or LOCAL in self.models:
            return None
        if self.local.path is None:
            raise ConfigError(
                "no file is named for the local model",
                hint=f'--model local:/path/model.gguf, or path = "…" under [local] in {FILE}',
            )
        return self.local.path

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
    where, file = read_file(home)
    _refuse_unknown_variables()
    given = {key: value for key, value in flags.items() if value is not None}
    try:
        return Settings(**{"_file": file, **given})
    except ValidationError as exc:
        raise _explain(exc, where) from exc
    except SettingsError as exc:
        raise ConfigError(f"an environment variable UNIFIED_FLOW_… is wrong: {exc}") from exc


def _refuse_unknown_variables() -> None:
    """A variable that nobody reads is a mistake that would otherwise show as a default."""
    known = {
        HOME_VARIABLE,
        *(PREFIX + name.upper() for name in (*Settings.model_fields, *NOT_OURS)),
    }
    for name in sorted(os.environ):
        top = name.upper().removeprefix(PREFIX).split(NESTED)[0]
        if name.upper().startswith(PREFIX) and PREFIX + top not in known:
            close = get_close_matches(PREFIX + top, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(
                f"the environment variable {name} is no setting{meant}", hint="mend or unset it"
            )


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
    """The names that could stand where the last one of `loc` does."""
    table: type[BaseModel] = Settings
    for part in loc[:-1]:
        field = table.model_fields.get(str(part))
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        table = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), table)
    return list(table.model_fields)
