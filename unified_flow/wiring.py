"""Making a flow's services from its settings: the one place that knows all the parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Unpack

from interventions import InterventionQueue
from interventions.home import find_home, state_folder
from interventions.queue import queue_at
from interventions.settings import NotificationSettings, QueueSettings, settings_of
from unified_flow.config import allowed_addresses
from unified_flow.config.document_roots import Root, absolute, folders_of, resolved
from unified_flow.config.paths import located_module
from unified_flow.config.settings import EMBEDDED, Settings, SettingsOverrides, load
from unified_flow.engine.services import Dispatcher, Services
from unified_flow.engine.telemetry.query_log import QueryLog
from unified_flow.errors import ConfigError, needs_extra
from unified_flow.guardrails.guardrails import Guardrails
from unified_flow.guardrails.recorder import Recorder
from unified_flow.models import Model
from unified_flow.models.registry import ModelRegistry
from unified_flow.policies import FailFast, Graceful, Policy, Silent
from unified_flow.retrieval.documents import Documents, documents_of
from unified_flow.stores import (
    grant_store,
    memory_store,
    session_store,
    shared_database,
    turn_store,
)
from unified_flow.tools import Tool
from unified_flow.tools.builtin.calculate import CALCULATE
from unified_flow.tools.builtin.doc_search import doc_search
from unified_flow.tools.builtin.file_search import file_tools
from unified_flow.tools.builtin.human_ask import HUMAN_ASK
from unified_flow.tools.builtin.internet_research import internet_research
from unified_flow.tools.builtin.memory_tools import memory_tools
from unified_flow.tools.functions import from_function
from unified_flow.tools.mcp_server import McpServer
from unified_flow.tools.permission_gate import Asker, PermissionGate
from unified_flow.tools.plugins import ToolModules, installed_tools
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.events import this_process
from unified_flow.turns.memory import MemoryStore
from unified_flow.turns.sessions import Sessions
from unified_flow.turns.store import TurnStore

if TYPE_CHECKING:  # the extra `otel`
    from unified_flow.engine.telemetry.spans import Traces

FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)
RESUMED_WITH = (
    "model",
    "base_url",
    "api_key_env",
    "api_key_file",
    "timeout_s",
    "policy",
    "collection",
    "recipes",
)
POLICIES: dict[str, Callable[[Settings], Policy]] = {
    "fail_fast": lambda settings: FailFast(),
    "graceful": lambda settings: Graceful(settings.graceful),
    "silent": lambda settings: Silent(),
}


class WiringOptions(SettingsOverrides, total=False):
    """Keywords of `UnifiedFlow.from_config`, which documents them."""

    docs: Path | str | Sequence[Path | str] | None
    model: str | Model | None
    tools: Sequence[Tool | Callable[..., Any]] | None
    tool_modules: str | Sequence[str] | None
    allow_tools: str | Sequence[str] | None
    asker: Asker | None
    extra_models: Mapping[str, Model] | None
    turns: TurnStore | None


def wire(
    home: Path | str | None = None,
    *,
    docs: Path | str | Sequence[Path | str] | None = None,
    model: str | Model | None = None,
    extra_models: Mapping[str, Model] | None = None,
    tools: Sequence[Tool | Callable[..., Any]] | None = None,
    tool_modules: str | Sequence[str] | None = None,
    allow_tools: str | Sequence[str] | None = None,
    asker: Asker | None = None,
    turns: TurnStore | None = None,
    pause: Callable[[float], Awaitable[None]] | None = None,
    **overrides: Unpack[SettingsOverrides],
) -> Services:
    """The services of a flow over `home`, as `UnifiedFlow.from_config` says. An override that is
    None means: as configured. `pause` stands in for asyncio.sleep between attempts. Raises
    ConfigError, and InputError for documents that are not there.
    """
    root = find_home(home)
    named = [absolute(each) for each in _listed("docs", docs, "a path", Path, str)] or None
    tool_modules = _listed("tool_modules", tool_modules, "a text", str)
    allow_tools = _listed("allow_tools", allow_tools, "a text", str)
    given = _listed("tools", tools, "a function or a Tool", Tool, *FUNCTIONS)
    own_tools = [each if isinstance(each, Tool) else from_function(each) for each in given]
    model, own_models = _models_given(model, extra_models or {})
    settings = load(root, docs=named, model=model, **overrides)
    settings_of(root, NotificationSettings)  # a mistake there is reported now, not with a failure
    settings.check_models(present={EMBEDDED, *own_models})
    private = [state_folder(root), root / "logs"]
    database = shared_database(root)
    documents = documents_of(root, settings, named, overrides.get("collection"), database)
    roots = documents.roots or [] if documents is not None else []
    sessions = session_store(root)
    queue = queue_at(root)
    memory = memory_store(root)
    servers = [McpServer(name, each, root) for name, each in settings.mcp.items()]
    built_in = _built_in_tools(documents, settings, roots, private, memory)
    configured = [located_module(Path.cwd(), each) for each in settings.tools.modules]
    given_modules = [located_module(Path.cwd(), each) for each in tool_modules]
    modules = ToolModules(list(dict.fromkeys([*configured, *given_modules])))
    kept = turn_store(root, known=sessions.last_turn_id) if turns is None else turns
    by_workers = database is not None and turns is None
    return Services(
        home=root,
        settings=settings,
        config_digest=_digest(settings),
        turns=kept,
        models=ModelRegistry(settings, own_models, state=state_folder(root)),
        toolbox=Toolbox([*built_in, *installed_tools(), *own_tools], servers, modules),
        gate=PermissionGate(
            grant_store(root),
            allow=(*settings.tools.allow, *allow_tools),
            deny=tuple(settings.tools.deny),
            hosts=frozenset(map(allowed_addresses.named, settings.research.hosts)),
            asker=asker,
            by=this_process().user,
        ),
        documents=documents,
        sessions=sessions,
        memory=memory,
        queue=queue,
        refuse_when_full=settings_of(root, QueueSettings).refuse_when_full,
        query_log=QueryLog.of(root),
        policy=POLICIES[settings.policy](settings),
        guardrails=_guardrails(root, settings, sessions, memory, queue),
        dispatcher=_workers(kept, settings) if by_workers else Dispatcher(),
        pause=asyncio.sleep if pause is None else pause,
        traces=_traces(settings),
        asked_with=_asked_with(named, given_modules, allow_tools, {**overrides, "model": model}),
    )


def _workers(turns: TurnStore, settings: Settings) -> Dispatcher:
    from unified_flow.engine.worker_dispatch import Workers
    from unified_flow.shared.turn_store import PostgresTurnStore

    assert isinstance(turns, PostgresTurnStore)
    return Workers(turns, settings.language)


def _listed(name: str, given: object, what: str, *kinds: type) -> list[Any]:
    """What was given, one or several, as a list. Raises ConfigError for what does not fit."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        listed = list(given)
    else:
        listed = [] if given is None else [given]
    for each in listed:
        if not isinstance(each, kinds):
            raise ConfigError(f"{name} is {what}, or a list of them, not {type(each).__name__}")
    return listed


def _models_given(model: object, extra: Mapping[str, Model]) -> tuple[str | None, dict[str, Model]]:
    """The name of the model, and a program's own models by name. Raises ConfigError."""
    if not isinstance(extra, Mapping):
        raise ConfigError(f"extra_models is a dict of Models by name, not {type(extra).__name__}")
    own = dict(extra)
    if isinstance(model, Model):
        own[model.name] = model
        model = model.name
    for each in own.values():
        if not isinstance(each, Model):
            raise ConfigError(f"extra_models holds a {type(each).__name__}, which is no Model")
    if model is not None and not isinstance(model, str):
        raise ConfigError(
            f"model is a name or a Model, not {type(model).__name__}",
            hint="a Model has `name`, `async complete(call)` and `async aclose()`",
        )
    return model, own


def _traces(settings: Settings) -> Traces | None:
    """Raises ConfigError if the extra is not there."""
    endpoint = settings.telemetry.otlp_endpoint
    if endpoint is None:
        return None
    with needs_extra("telemetry.otlp_endpoint", "otel"):
        from unified_flow.engine.telemetry.spans import Traces
    return Traces(endpoint, content=settings.telemetry.content)


def _asked_with(
    docs: Sequence[Path | str] | None,
    tool_modules: list[str],
    allow_tools: Sequence[str] | None,
    overrides: dict[str, Any],
) -> dict[str, Any]:
    """What a resumed turn is given again, JSON-able. No address with a password in it,
    or with a key in its query, is kept."""
    given = {key: overrides[key] for key in RESUMED_WITH if overrides.get(key) is not None}
    if any(mark in given.get("base_url", "") for mark in "@?"):
        del given["base_url"]
    for key in ("api_key_file", "recipes"):
        if key in given:
            given[key] = str(Path(given[key]).absolute())
    if tool_modules:
        given["tool_modules"] = tool_modules
    if allow_tools:
        given["allow_tools"] = list(allow_tools)
    return given | ({"docs": [str(absolute(each)) for each in docs]} if docs else {})


def _built_in_tools(
    documents: Documents | None,
    settings: Settings,
    docs: list[Root],
    private: list[Path],
    memory: MemoryStore,
) -> list[Tool]:
    """A new one: a file in `tools/builtin/`, a name in `config/tool_names.py`, a place here."""
    roots = folders_of(resolved(settings.roots) if settings.roots else docs)
    search = [doc_search(documents)] if documents is not None else []
    files = list(file_tools(roots, private, settings.documents)) if roots else []
    research = internet_research(settings.research)
    return [*search, *files, research, CALCULATE, HUMAN_ASK, *memory_tools(memory)]


def _guardrails(
    home: Path,
    settings: Settings,
    sessions: Sessions,
    memory: MemoryStore,
    queue: InterventionQueue,
) -> Guardrails:
    """Raises ConfigError for a moderator that cannot be made."""
    own = settings.guardrails
    moderator = None
    if own.moderation_url is not None:
        from unified_flow.guardrails.moderator import moderator_of

        moderator = moderator_of(own)
    always = settings.policy == "silent"
    recorder = Recorder(queue, own)
    return Guardrails(home, own, sessions, memory, recorder, moderator, always=always)


def _digest(settings: Settings) -> str:
    """What the settings were, in 16 hex digits; settings hold no secrets."""
    text = json.dumps(settings.model_dump(mode="json"), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]
