"""The tables of `unified_flow.toml`; `settings.py` puts them together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from unified_flow.config.allowed_addresses import parse_allowed
from unified_flow.config.document_roots import DocumentRoot
from unified_flow.config.paths import GGUF, EmbeddingModel, ModelName, ModuleSpec, Program

T = TypeVar("T")
Seconds = Annotated[float, Field(gt=0)]


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def setting(default: T, description: str, **bounds: Any) -> T:
    """A field that has a default."""
    return cast("T", Field(default=default, description=description, **bounds))


def table_in(field: FieldInfo) -> type[BaseModel] | None:
    """The table that a setting is, or holds under any name."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


Size = Literal["small", "large", "auto"]


class ModelSettings(Table):
    """One OpenAI-compatible endpoint. `timeout_s` bounds a whole call."""

    model: str = Field(description="the server's own name for the model")
    base_url: str = Field(description="OpenAI-compatible endpoint, with /v1")
    api_key_env: str = setting("OPENAI_API_KEY", "variable that holds the server's key")
    api_key_file: Path | None = setting(None, "file that holds the server's key")
    timeout_s: Seconds = setting(60.0, "seconds for one call as a whole")
    size: Size = setting("auto", "`small`, `large` or `auto`: large")


class Roles(Table):
    """Which model plays which role: `embedded` or the name of a [models.*] table."""

    reflex: ModelName | None = setting(None, "phases 0 and 1; else `model`")
    mind: ModelName | None = setting(None, "phases 2, 3, 4 and 6; else `model`")
    voice: ModelName | None = setting(None, "phase 5, the answer; else `model`")


class NamedCollection(Table):
    """An index of its own, which --collection chooses."""

    docs: list[DocumentRoot] = setting([], "what this collection holds")


class DocumentSettings(Table):
    """How documents are read (architecture/retrieval.md)."""

    language: str | None = setting(
        None,
        "`en`, `sv`: of what does not name its own; else that of most files",
        pattern=r"^[a-z]{2}$",
    )
    ocr: str | None = setting(
        None,
        "command that prints the text of the pages of {file} with form feeds between",
        pattern=r"\{file\}",
    )
    formats: dict[str, str] = setting(
        {}, '`{"*.txt" = "rst"}`: what is read as if it ended in .rst'
    )


class Limits(Table):
    """Loop limits of one turn (error-handling-architecture.md, Validation Loop Limits)."""

    planning_loop: int = setting(5, "rounds of planner and coordinator", ge=1)
    retry: int = setting(1, "times that validation may ask to plan anew", ge=0)
    revise: int = setting(2, "times that it may ask for other words", ge=0)
    model_calls: int = setting(25, "calls of a model in one turn", ge=1)


class GracefulSettings(Table):
    """The policy `graceful`: its time-outs, and what is off until somebody wants it
    (architecture/error-handling.md)."""

    search_timeout_s: Seconds = setting(1.5, "seconds for one search")
    generation_timeout_s: Seconds = setting(3.0, "seconds for one call of a model")
    pipeline_timeout_s: Seconds = setting(
        5.0, "seconds for a turn as a whole, from question to answer"
    )
    retries: int = setting(0, "further tries of a phase whose failure may pass by itself", ge=0)
    backoff_s: float = setting(0.2, "seconds before the first of them; doubles with each", ge=0)
    failover: ModelName | None = setting(
        None, "the [models.*] table that is asked where another model failed"
    )
    breaker: bool = setting(False, "ask a model no more for a while once it keeps failing")
    breaker_failures: int = setting(5, "failures that open the breaker", ge=1)
    breaker_window_s: Seconds = setting(60.0, "seconds within which they must happen")
    breaker_open_s: Seconds = setting(
        30.0, "seconds until one call may try whether it is well again"
    )


class ToolSettings(Table):
    """A person's own tools, and which tools may write or use the network (architecture/tools.md).
    Patterns are like `memory.*`."""

    modules: list[ModuleSpec] = setting(
        [], "`module`, `module:function` or `file.py` with tools of your own"
    )
    allow: list[str] = setting([], "tools that may write or use the network unasked")
    deny: list[str] = setting([], "tools that may never run; wins over all else")


class McpSettings(Table):
    """An MCP server: a command that is started, or an address. Secrets are named, not written."""

    command: Program | None = setting(None, "program to start (stdio)")
    args: list[str] = setting([], "its arguments")
    env: dict[str, str] = setting({}, "variables for it; no secrets")
    env_from: list[str] = setting([], "variables that it gets from the environment, such as tokens")
    url: str | None = setting(None, "address of a running server (HTTP)")
    headers_env: dict[str, str] = setting({}, "header: variable that holds its value")
    start_timeout_s: Seconds = setting(30.0, "seconds until it must answer")
    timeout_s: Seconds = setting(60.0, "seconds for one call of a tool")
    include: list[str] = setting(["*"], "which of its tools are used, such as `get_*`")
    exclude: list[str] = setting([], "which of those are not")
    optional: bool = setting(False, "without it a turn goes on, and lacks only its tools")
    trust_hints: bool = setting(False, "believe it which of its tools only read, and allow those")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command or a url")
        return self


class ResearchSettings(Table):
    """Fetching web pages: for internet.research, and as documents (architecture/web.md)."""

    hosts: list[str] = setting(
        [],
        "hosts of which a model may name any address; of others, only those that the"
        " question or a page of the turn names",
    )
    allow_private: list[str] = setting(
        [], "`10.0.0.5`, `10.0.0.0/8`, `host:8080`: what may be fetched though not public"
    )
    ports: list[Annotated[int, Field(gt=0, lt=65536)]] = setting(
        [80, 443], "ports that may be asked of any public host"
    )
    timeout_s: Seconds = setting(20.0, "seconds for one page as a whole")
    max_bytes: int = setting(5 * 1024 * 1024, "of one page, counted when unpacked", gt=0)
    max_redirects: int = setting(5, "redirects that one page may take", ge=0)

    @field_validator("allow_private")
    @classmethod
    def _entries(cls, entries: list[str]) -> list[str]:
        for entry in entries:
            parse_allowed(entry)
        return entries


class LocalSettings(Table):
    """A language model from a file, which llama.cpp serves (extra: local)."""

    path: Path | None = setting(None, "the .gguf file that `model = local` means")
    context_tokens: int = setting(8192, "room for prompt and answer", ge=512)
    start_timeout_s: Seconds = setting(120.0, "seconds for loading it")


class ServeSettings(Table):
    """`unified-flow serve` (architecture/serving.md). Tokens are named, not written."""

    host: str = setting("127.0.0.1", "address to listen on; any but loopback needs a token")
    port: int = setting(8000, "0: any free one", ge=0, lt=65536)
    token_env: str = setting("RAG_CLIENT_TOKEN", "variable with the token that clients must send")
    token_file: Path | None = setting(
        None, "file with that token, or a line `NAME TOKEN` for each client; may change meanwhile"
    )
    triage_token_env: str = setting(
        "RAG_TRIAGE_TOKEN", "variable with the token for /turns and /interventions; off without one"
    )
    triage_token_file: Path | None = setting(None, "file with that token, instead")
    metrics_token_env: str = setting(
        "RAG_METRICS_TOKEN", "variable with the token for /metrics; else a client's opens it"
    )
    metrics_token_file: Path | None = setting(None, "file with that token, instead")
    allowed_hosts: list[str] = setting(
        [], "names that requests may use; on loopback else only its own"
    )
    cors_origins: list[str] = setting([], "origins whose pages may call it from a browser")
    trusted_proxies: list[str] = setting([], "addresses whose X-Forwarded-For is believed")
    max_body_bytes: int = setting(262_144, "of one request", gt=0)
    body_timeout_s: Seconds = setting(
        10.0, "seconds within which a request's head must have arrived, and then its body"
    )
    max_connections: int = setting(
        1000, "at once; beyond them who has asked nothing is sent away", gt=0
    )
    max_turns: int = setting(50, "turns at once; more get 503", gt=0)
    rate_limit: str = setting(
        "5/second", "questions of one client per second, minute or hour; or off"
    )
    own_session_ids: bool = setting(
        False, "accept only a session_id that POST /sessions has made: clients can name no other"
    )
    json_logs: bool = setting(
        False, "write warnings, errors and requests to stdout, too, as a JSON object a line"
    )
    shutdown_grace_s: float = setting(
        5.0, "seconds that running turns get to end when it stops", ge=0
    )

    @field_validator("rate_limit")
    @classmethod
    def _rate(cls, text: str) -> str:
        if not re.fullmatch(r"off|[1-9]\d{0,8}/(second|minute|hour)", text):
            raise ValueError("a rate is like 5/second, 60/minute or off")
        return text


class TelemetrySettings(Table):
    """Traces for a collector of OpenTelemetry (extra: otel). Its own variables hold, too, such as
    OTEL_EXPORTER_OTLP_HEADERS."""

    otlp_endpoint: str | None = setting(
        None, "where traces go, such as http://localhost:4318/v1/traces; off without one"
    )
    content: bool = setting(False, "whether they hold words of questions, answers and errors")


class VectorSettings(Table):
    """Search by meaning beside search by words (extra: vectors); off without a model. The name of
    the model may stand for the whole table: `vectors = "model.gguf"`."""

    model: EmbeddingModel | None = setting(
        None, "embedding model: a .gguf file, or a model of `base_url`"
    )
    base_url: str | None = setting(
        None, "OpenAI-compatible endpoint, with /v1; else the top `base_url`"
    )
    api_key_env: str = setting("OPENAI_API_KEY", "variable that holds the key of `base_url`")
    qdrant_url: str | None = setting(
        None, "Qdrant server; else the vectors are in the index (extra: qdrant)"
    )
    qdrant_key_env: str | None = setting(None, "variable that holds the key of `qdrant_url`")
    timeout_s: Seconds = setting(60.0, "seconds for one batch of texts")

    @property
    def path(self) -> Path | None:
        """The file, where the model is one."""
        if self.model is None or not self.model.endswith(GGUF):
            return None
        return Path(self.model).expanduser().absolute()


class GuardrailSettings(Table):
    """What checks messages and replies, and where it is recorded (architecture/guardrails.md)."""

    moderation_url: str | None = setting(
        None, "OpenAI-compatible moderations endpoint, with /v1; none is asked"
    )
    moderation_key_env: str | None = setting(
        None, "variable that holds its own key; no other key is ever sent to it"
    )
    moderation_model: str | None = setting(None, "its name for the model; else the server chooses")
    moderation_timeout_s: Seconds = setting(5.0, "seconds for one check")
    moderation_failure: Literal["fail_closed", "fail_open"] = setting(
        "fail_closed", "whether silence or an answer follows if it fails"
    )
    check_replies: bool = setting(False, "whether a user's flagged words block replies, too")
    shadow: bool = setting(
        False, "whether what would be blocked is only recorded, in `ai_decisions`"
    )
    escalate_categories: list[str] = setting(
        [], "categories of moderation that go to a person, such as `self-harm`"
    )
    database_url_env: str | None = setting(
        None, "variable with the URL of a PostgreSQL database; else that of [shared], or SQLite"
    )
    alert_count: int = setting(10, "silent failures or blocks in `alert_window_s` that alert", ge=1)
    alert_window_s: Seconds = setting(600.0, "seconds that they are counted")
