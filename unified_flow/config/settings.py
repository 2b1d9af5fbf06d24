"""Settings: flag > environment > unified_flow.toml or [tool.unified_flow] > default.

An environment variable is UNIFIED_FLOW_<KEY>, with two underscores between levels
(UNIFIED_FLOW_LIMITS__MODEL_CALLS=10). Durations are seconds. Secrets are never settings:
a setting names the variable or the file that holds one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from interventions import settings as queue
from interventions.errors import SettingsError as FileError
from interventions.home import HOME_VARIABLE
from unified_flow.config.document_roots import DEFAULT_COLLECTION, DocumentRoot
from unified_flow.config.paths import LOCAL_PREFIX, ModelName, with_absolute_paths
from unified_flow.config.tables import (
    DocumentSettings,
    GracefulSettings,
    GuardrailSettings,
    Limits,
    LocalSettings,
    McpSettings,
    ModelSettings,
    NamedCollection,
    ResearchSettings,
    Roles,
    Seconds,
    ServeSettings,
    Size,
    TelemetrySettings,
    ToolSettings,
    VectorSettings,
    setting,
    table_in,
)
from unified_flow.config.tool_names import FAMILIES
from unified_flow.errors import ConfigError
from unified_flow.errors.safe_messages import Language

PolicyName = Literal["fail_fast", "graceful", "silent"]
EMBEDDED = "embedded"
LOCAL = "local"
PREFIX = "UNIFIED_FLOW_"
NESTED = "__"
NOT_OURS = frozenset(queue.TABLE_OF.values())  # tables that interventions/settings.py reads


def _not_built_in(name: str) -> str:
    if name in FAMILIES:
        raise ValueError(f"{name} is what built-in tools are called; choose another name")
    return name


ServerName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$"), AfterValidator(_not_built_in)
]


def _as_table(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


Vectors = Annotated[
    VectorSettings, BeforeValidator(_as_table, json_schema_input_type=str | VectorSettings)
]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        env_prefix=PREFIX,
        env_nested_delimiter=NESTED,
        nested_model_default_partial_update=True,
    )

    docs: list[DocumentRoot] = setting([], "files, folders and web pages to answer from")
    collection: str = setting(DEFAULT_COLLECTION, "the index to answer from when none is named")
    collections: dict[str, NamedCollection] = setting(
        {}, "more indexes, by the name that --collection uses"
    )
    documents: DocumentSettings = DocumentSettings()
    model: ModelName = setting(
        EMBEDDED, "`embedded`, `local`, a [models.*] table, or a model of `base_url`"
    )
    base_url: str | None = setting(None, "OpenAI-compatible endpoint, with /v1")
    api_key_env: str = setting("OPENAI_API_KEY", "variable that holds the key of `base_url`")
    api_key_file: Path | None = setting(None, "file that holds the key of `base_url`, instead")
    timeout_s: Seconds = setting(60.0, "seconds for one call of a model")
    models: dict[str, ModelSettings] = setting(
        {}, "more endpoints, by the name that `model` and [roles] use"
    )
    roles: Roles = Roles()
    size: Size = setting(
        "auto",
        "of `model`: `small` leaves to rules what they do better, `large` does it all;"
        " `auto` takes a model from a local file for small",
    )
    local: LocalSettings = LocalSettings()
    policy: PolicyName = setting(
        "fail_fast", "what a failure does: `fail_fast`, `graceful` or `silent`"
    )
    graceful: GracefulSettings = GracefulSettings()
    language: Language = setting("en", "of the messages to users when something fails")
    roots: list[Path] = setting([], "folders that file tools may read; docs if none")
    recipes: Path | None = setting(
        None, "folder of recipes that replace the packaged ones; else recipes/"
    )
    limits: Limits = Limits()
    tools: ToolSettings = ToolSettings()
    research: ResearchSettings = ResearchSettings()
    vectors: Vectors = VectorSettings()
    guardrails: GuardrailSettings = GuardrailSettings()
    serve: ServeSettings = ServeSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    mcp: dict[ServerName, McpSettings] = setting(
        {}, "MCP servers, whose tools are called NAME.tool"
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
        # To look for each setting there takes as long as all the rest.
        environment = (env_settings,) if _variables() else ()
        return (
            InitSettingsSource(settings_cls, flags),
            *environment,
            InitSettingsSource(settings_cls, file),
        )

    def check_models(self, present: Collection[str]) -> None:
        """Raises ConfigError for a model or a role that is neither present nor served, and for a
        server that no phase would ask: the embedded model never stands in for another one."""
        roles = (self.roles.reflex, self.roles.mind, self.roles.voice)
        named = {self.model, *(name for name in roles if name is not None)}
        if self.policy == "graceful" and self.graceful.failover is not None:
            named.add(self.graceful.failover)
        for name in named - set(present):
            if self.local_path(name) is None:
                self.endpoint(name)
        embeds = self.vectors.model is not None and self.vectors.path is None
        if self.base_url is not None and named == {EMBEDDED} and not embeds:
            raise ConfigError(
                f"base_url is {self.base_url}, and no model of that server is named",
                hint="name one with --model NAME",
            )

    def local_path(self, name: str) -> Path | None:
        """The file of `local:/path/model.gguf`, or of `local`; None for any other model."""
        if name == LOCAL_PREFIX:
            raise ConfigError(f"{name} names no file", hint="--model local:/path/model.gguf")
        if name.startswith(LOCAL_PREFIX):
            return Path(name.removeprefix(LOCAL_PREFIX)).expanduser().absolute()
        if name != LOCAL or LOCAL in self.models:
            return None
        if self.local.path is None:
            raise ConfigError(
                "no file is named for the local model",
                hint='--model local:/path/model.gguf, or path = "…" under [local] in'
                " unified_flow.toml",
            )
        return self.local.path

    def is_small(self, name: str) -> bool:
        """Whether the language model is a small one; with `auto`, one from a local file is."""
        size = self.models[name].size if name in self.models else self.size
        return size == "small" or (size == "auto" and self.local_path(name) is not None)

    def endpoint(self, name: str) -> ModelSettings:
        """The endpoint that `name` stands for: a [models.*] table, or a model of base_url."""
        if name in self.models:
            return self.models[name]
        if self.base_url is None:
            known = [EMBEDDED, *self.models]
            raise ConfigError(
                f"model {name!r} is not configured (known: {', '.join(known)})",
                hint=f"name its server with --base-url URL, or add [models.{name}] to"
                " unified_flow.toml",
            )
        return ModelSettings(
            model=name,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            api_key_file=self.api_key_file,
            timeout_s=self.timeout_s,
        )


class SettingsOverrides(TypedDict, total=False):
    """The fields of `Settings` as a program or a command gives them: None means not given, a table
    is a mapping. `docs`, `model` and [tools] have parameters of their own."""

    collection: str | None
    collections: Mapping[str, Any] | None
    documents: Mapping[str, Any] | None
    base_url: str | None
    api_key_env: str | None
    api_key_file: Path | str | None
    timeout_s: float | None
    models: Mapping[str, Any] | None
    roles: Mapping[str, Any] | None
    size: str | None
    local: Mapping[str, Any] | None
    policy: str | None
    graceful: Mapping[str, Any] | None
    language: str | None
    roots: Sequence[Path | str] | None
    recipes: Path | str | None
    limits: Mapping[str, Any] | None
    research: Mapping[str, Any] | None
    vectors: Mapping[str, Any] | str | None
    guardrails: Mapping[str, Any] | None
    serve: Mapping[str, Any] | None
    telemetry: Mapping[str, Any] | None
    mcp: Mapping[str, Any] | None


def load(
    home: Path,
    *,
    docs: Sequence[Path | str] | None = None,
    model: str | None = None,
    **overrides: Unpack[SettingsOverrides],
) -> Settings:
    """Settings of `home`. An override that is None counts as not given. Raises ConfigError."""
    where, tables = read_tables(home)
    file = {key: value for key, value in tables.items() if key not in NOT_OURS}
    _refuse_unknown_variables()
    given = {k: v for k, v in {"docs": docs, "model": model, **overrides}.items() if v is not None}
    try:
        return Settings(**{"_file": with_absolute_paths(file, Settings, home), **given})
    except ValidationError as exc:
        raise _explain(exc, where, given) from exc
    except SettingsError as exc:
        raise ConfigError(f"an environment variable UNIFIED_FLOW_… is wrong: {exc}") from exc


def read_tables(home: Path) -> tuple[Path | None, dict[str, Any]]:
    """The file that rules `home`, if there is one, and what is set in it, the queue's tables
    among it. Raises ConfigError."""
    try:
        path, tables = queue.read_tables(home)
    except FileError as exc:
        raise ConfigError(str(exc), hint=exc.hint) from exc
    if isinstance(model := tables.get("vectors"), str):  # one line for the whole table
        tables["vectors"] = {"model": model}
    return path, tables


def _variables() -> list[str]:
    return sorted(name for name in os.environ if name.upper().startswith(PREFIX))


def _refuse_unknown_variables() -> None:
    """An unknown variable is a mistake that would otherwise show as a default."""
    known = {
        HOME_VARIABLE,
        *(PREFIX + name.upper() for name in (*Settings.model_fields, *NOT_OURS)),
    }
    for name in _variables():
        top = name.upper().removeprefix(PREFIX).split(NESTED)[0]
        if PREFIX + top not in known:
            close = get_close_matches(PREFIX + top, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(
                f"the environment variable {name} is no setting{meant}", hint="mend or unset it"
            )


def _explain(exc: ValidationError, where: Path | None, flags: Collection[str]) -> ConfigError:
    """The first mistake, with the setting's name and, for a typo, the name that was meant."""
    # A typo first: of a key that is needed it is the cause, and "field required" the effect.
    found = sorted(exc.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    first = found[0]
    key = ".".join(str(part) for part in first["loc"])
    source = f" (in {where}, a flag or the environment)" if where else ""
    variable = variable_set(first["loc"])
    if variable is not None and first["loc"][0] not in flags:
        source = f" (in the environment variable {variable})"
    if first["type"] == "extra_forbidden":
        close = get_close_matches(str(first["loc"][-1]), _known(first["loc"]), n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return ConfigError(f"unknown setting {key!r}{source}{meant}", hint="mend the name")
    if first["type"] in ("model_type", "dict_type"):
        return ConfigError(f"setting {key!r} is wrong: it is a table{source}", hint=f"[{key}]")
    as_list = f"write it as a list: [{first['input']!r}]" if first["type"] == "list_type" else None
    return ConfigError(f"setting {key!r} is wrong: {first['msg'].lower()}{source}", hint=as_list)


def variable_set(path: tuple[int | str, ...]) -> str | None:
    """The environment's variable, as it is written, that sets what stands there or a whole table as
    JSON, if it is set: it goes before the file."""
    wanted = (PREFIX + NESTED.join(map(str, path))).upper()
    return next((name for name in sorted(os.environ) if name.upper() == wanted), None)


def _known(loc: tuple[int | str, ...]) -> list[str]:
    """The names that could stand where the last one of `loc` does."""
    table: type[BaseModel] = Settings
    for part in loc[:-1]:
        field = table.model_fields.get(str(part))
        table = (table_in(field) if field is not None else None) or table
    return list(table.model_fields)
