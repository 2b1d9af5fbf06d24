"""The tables of `unified_flow.toml`; `settings.py` puts them together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from unified_flow.config.allowed_addresses import parse_allowed
from unified_flow.config.document_roots import DocumentRoot
from unified_flow.config.paths import GGUF, EmbeddingModel, ModelName, ModuleSpec, Program


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def table_in(field: FieldInfo) -> type[BaseModel] | None:
    """The table that a setting is, or holds under any name."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


Size = Literal["small", "large", "auto"]


class ModelSettings(Table):
    """One OpenAI-compatible endpoint. `timeout_s` bounds a whole call."""

    model: str = Field(description="the server's own name for the model")
    base_url: str = Field(description="OpenAI-compatible endpoint, with /v1")
    api_key_env: str = Field(
        default="OPENAI_API_KEY", description="variable that holds the server's key"
    )
    api_key_file: Path | None = Field(default=None, description="file that holds the server's key")
    timeout_s: float = Field(default=60.0, gt=0, description="seconds for one call as a whole")
    size: Size = Field(default="auto", description="`small`, `large` or `auto`: large")


class Roles(Table):
    """Which model plays which role: `embedded` or the name of a [models.*] table."""

    reflex: ModelName | None = Field(default=None, description="phases 0 and 1; else `model`")
    mind: ModelName | None = Field(default=None, description="phases 2, 3, 4 and 6; else `model`")
    voice: ModelName | None = Field(default=None, description="phase 5, the answer; else `model`")


class NamedCollection(Table):
    """An index of its own, which --collection chooses."""

    docs: list[DocumentRoot] = Field(default=[], description="what this collection holds")


class DocumentSettings(Table):
    """How documents are read (architecture/retrieval.md)."""

    language: str | None = Field(
        default=None,
        pattern=r"^[a-z]{2}$",
        description="`en`, `sv`: of what does not tell its own; else that of most files",
    )
    ocr: str | None = Field(
        default=None,
        pattern=r"\{file\}",
        description="command that prints the text of the pages of {file} with form feeds between",
    )
    formats: dict[str, str] = Field(
        default={}, description='`{"*.txt" = "rst"}`: what is read as if it ended in .rst'
    )


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
    failover: ModelName | None = Field(
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

    modules: list[ModuleSpec] = Field(
        default=[], description="`module`, `module:function` or `file.py` with tools of your own"
    )
    allow: list[str] = Field(
        default=[], description="tools that may write or use the network unasked"
    )
    deny: list[str] = Field(default=[], description="tools that may never run; wins over all else")


class McpSettings(Table):
    """An MCP server: a command that is started, or an address. Secrets are named, not written."""

    command: Program | None = Field(default=None, description="program to start (stdio)")
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
    include: list[str] = Field(
        default=["*"], description="which of its tools are used, such as `get_*`"
    )
    exclude: list[str] = Field(default=[], description="which of those are not")
    optional: bool = Field(
        default=False, description="without it a turn goes on, and lacks only its tools"
    )
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

    hosts: list[str] = Field(
        default=[],
        description="hosts of which a model may name any address; of others, only those that the"
        " question or a page of the turn names",
    )
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
        default=10.0,
        gt=0,
        description="seconds within which a request's head must have arrived, and then its body",
    )
    max_connections: int = Field(
        default=1000, gt=0, description="at once; beyond them who has asked nothing is sent away"
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


class VectorSettings(Table):
    """Search by meaning beside search by words (extra: vectors); off without a model. The name of
    the model may stand for the whole table: `vectors = "model.gguf"`."""

    model: EmbeddingModel | None = Field(
        default=None, description="embedding model: a .gguf file, or a model of `base_url`"
    )
    base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint, with /v1; else the top `base_url`"
    )
    api_key_env: str = Field(
        default="OPENAI_API_KEY", description="variable that holds the key of `base_url`"
    )
    qdrant_url: str | None = Field(
        default=None, description="Qdrant server; else the vectors are in the index (extra: qdrant)"
    )
    qdrant_key_env: str | None = Field(
        default=None, description="variable that holds the key of `qdrant_url`"
    )
    timeout_s: float = Field(default=60.0, gt=0, description="seconds for one batch of texts")

    @property
    def path(self) -> Path | None:
        """The file, where the model is one."""
        if self.model is None or not self.model.endswith(GGUF):
            return None
        return Path(self.model).expanduser().absolute()


class GuardrailSettings(Table):
    """What checks messages and replies, and where it is recorded (architecture/guardrails.md)."""

    moderation_url: str | None = Field(
        default=None, description="OpenAI-compatible moderations endpoint, with /v1; none is asked"
    )
    moderation_key_env: str | None = Field(
        default=None, description="variable that holds its own key; no other key is ever sent to it"
    )
    moderation_model: str | None = Field(
        default=None, description="its name for the model; else the server chooses"
    )
    moderation_timeout_s: float = Field(default=5.0, gt=0, description="seconds for one check")
    moderation_failure: Literal["fail_closed", "fail_open"] = Field(
        default="fail_closed", description="whether silence or an answer follows if it fails"
    )
    moderator: ModuleSpec | None = Field(
        default=None,
        description="a classifier instead: an entry point, `module:name` or `file.py:name`",
    )
    escalate_categories: list[str] = Field(
        default=[], description="categories of moderation that go to a person, such as `self-harm`"
    )
    database_url_env: str | None = Field(
        default=None, description="variable with the URL of a PostgreSQL database; else SQLite"
    )
    alert_count: int = Field(
        default=10, ge=1, description="silent failures or blocks in `alert_window_s` that alert"
    )
    alert_window_s: float = Field(default=600.0, gt=0, description="seconds that they are counted")

    @model_validator(mode="after")
    def _one_moderator(self) -> Self:
        if self.moderator is not None and self.moderation_url is not None:
            raise ValueError("name either a moderation_url or a moderator")
        return self
