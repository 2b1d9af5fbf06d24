"""Each phase fails for real: one intervention, its severity, and no later phase has run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.answers import (
    APPROVE,
    QUESTION,
    SEARCH,
    every_phase_by_model,
    journal_lines,
    open_entries,
    script,
    scripted_flow,
    served_flow,
    started_phases,
    verdict,
)
from tests.servers.model_server import (
    Behaviour,
    ModelServer,
    answer,
    cut_body,
    cut_stream,
    empty_choices,
    hang,
    null_content,
    rate_limited,
    raw,
    refused_url,
    status,
)
from unified_flow import errors
from unified_flow.engine.phase_table import PHASES
from unified_flow.errors import PathRefusedError
from unified_flow.phases import NAMES, recipe
from unified_flow.phases import errors as phase_errors
from unified_flow.turns.results import Plan, ToolRequest

Breaker = Callable[[Path, Path, ModelServer], None]


def _model(phase: str, behaviour: Behaviour) -> Breaker:
    def break_it(home: Path, docs: Path, server: ModelServer) -> None:
        server.script = script(**{phase: behaviour})

    return break_it


def _memory_that_cannot_be_read(home: Path, docs: Path, server: ModelServer) -> None:
    folder = home / "shared_state" / "memory"
    folder.mkdir(parents=True)
    (folder / "default.jsonl").write_text("this is no JSON\n")


def _index_destroyed(home: Path, docs: Path, server: ModelServer) -> None:
    folder = home / "shared_state" / "index"
    folder.mkdir(parents=True)
    (folder / "documents.sqlite3").write_bytes(b"not a database, " * 400)


def _session_store_in_the_way(home: Path, docs: Path, server: ModelServer) -> None:
    # Reading finds nothing yet; the last phase then has no place to write to.
    def block(connection: object) -> str:
        (home / "shared_state" / "sessions.sqlite3").mkdir()
        return APPROVE.model_dump_json()

    server.script = script(validation=lambda c: (block(c), answer(APPROVE)(c)))


BREAKS: dict[str, tuple[Breaker, str, type[Exception]]] = {
    "query_analyzer": (_model("query_analyzer", status(500)), "llm_error", httpx.HTTPStatusError),
    "reflection": (_model("reflection", raw(b"<html>")), "parse_error", errors.NotJSONError),
    "context_gatherer": (_memory_that_cannot_be_read, "retrieval_error", errors.RetrievalError),
    "planner": (_model("planner", answer("no idea")), "parse_error", errors.NotJSONError),
    "coordinator": (_index_destroyed, "retrieval_error", errors.RetrievalError),
    "synthesis": (_model("synthesis", cut_body()), "llm_error", httpx.TransportError),
    "validation": (
        _model("validation", answer({"a": 1})),
        "parse_error",
        errors.SchemaMismatchError,
    ),
    "save": (_session_store_in_the_way, "retrieval_error", errors.RetrievalError),
}


@pytest.mark.parametrize("phase", PHASES, ids=NAMES)
def test_a_phase_that_fails_halts_the_turn_with_one_intervention(
    phase: object, home: Path, docs: Path, model_server: ModelServer
) -> None:
    name, error, severity = phase.NAME, phase.ERROR, phase.SEVERITY
    break_it, category, cause = BREAKS[name]
    model_server.script = script()
    break_it(home, docs, model_server)

    async def run() -> None:
        async with served_flow(home, model_server.url, docs) as flow:
            if name == "save":
                turn = await flow.process("s", QUESTION)
                assert turn.response == "A topic is a named bus."
                assert not turn.saved
                return
            with pytest.raises(error) as raised:
                await flow.process("s", QUESTION)
            assert type(raised.value) is error
            assert isinstance(raised.value.__cause__, cause)
            assert raised.value.phase == name
            assert raised.value.intervention_id == open_entries(home)[0]["id"]

    asyncio.run(run())
    (entry,) = open_entries(home)
    assert (entry["phase"], entry["severity"]) == (name, severity)
    assert entry["error_category"] == category
    assert entry["turn_id"] == 1
    assert entry["traceback"]
    assert entry["context"]["query"] == QUESTION
    ribbon = {step["name"]: step["status"] for step in entry["context"]["turn"]["ribbon"]}
    later = NAMES[NAMES.index(name) + 1 :]
    assert ribbon[name] == "failed"
    assert all(ribbon[after] == "not_run" for after in later)
    assert not set(started_phases(home)) & set(later)


FAILURES: dict[str, tuple[Behaviour, str, str, str]] = {
    "unauthorized": (status(401), "HTTPStatusError", "llm_error", "LLM_ERROR"),
    "rate limited": (rate_limited(), "HTTPStatusError", "llm_error", "RATE_LIMITED"),
    "server error": (status(500), "HTTPStatusError", "llm_error", "LLM_ERROR"),
    "hanging": (hang(), "ReadTimeout", "llm_error", "LLM_ERROR"),
    "cut in the body": (cut_body(), "RemoteProtocolError", "llm_error", "LLM_ERROR"),
    "cut stream": (cut_stream(), "CutReplyError", "llm_error", "LLM_ERROR"),
    "no choice": (empty_choices(), "EmptyReplyError", "llm_error", "LLM_ERROR"),
    "no content": (null_content(), "EmptyReplyError", "llm_error", "LLM_ERROR"),
    "not JSON": (answer("I think so"), "NotJSONError", "parse_error", "LLM_ERROR"),
    "another shape": (answer({"x": 1}), "SchemaMismatchError", "parse_error", "LLM_ERROR"),
    "cut by length": (answer('{"dec', "length"), "CutReplyError", "llm_error", "LLM_ERROR"),
}


@every_phase_by_model
@pytest.mark.parametrize("kind", FAILURES)
def test_each_way_a_model_server_fails_is_its_own_clear_failure(
    kind: str, home: Path, docs: Path, model_server: ModelServer
) -> None:
    behaviour, error_type, category, code = FAILURES[kind]
    model_server.script = script(reflection=behaviour)

    async def run() -> None:
        settings = {"models": {"m": {"model": "m", "base_url": model_server.url, "timeout_s": 0.5}}}
        from unified_flow.flow import UnifiedFlow

        async with UnifiedFlow.from_config(
            home, docs=[docs], **(settings | {"model": "m"})
        ) as flow:
            with pytest.raises(phase_errors.ReflectionError) as raised:
                await flow.process("s", QUESTION)
        assert (raised.value.category, raised.value.code) == (category, code)
        assert raised.value.stage == "llm" or code == "RATE_LIMITED"

    asyncio.run(run())
    (entry,) = open_entries(home)
    assert (entry["error_type"], entry["error_category"]) == (error_type, category)
    assert entry["type"] == ("schema_failure" if category == "parse_error" else "error")
    assert model_server.phases == ["query_analyzer", "reflection"], "no retry under fail_fast"


def test_a_server_that_is_not_there_is_a_connect_error(home: Path, docs: Path) -> None:
    async def run() -> None:
        async with served_flow(home, refused_url(), docs) as flow:
            with pytest.raises(phase_errors.QueryAnalyzerError) as raised:
                await flow.process("s", QUESTION)
            assert isinstance(raised.value.__cause__, httpx.ConnectError)

    asyncio.run(run())
    (entry,) = open_entries(home)
    assert (entry["severity"], entry["error_category"]) == ("critical", "llm_error")


def test_the_key_is_nowhere_after_a_refusal(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-4f9a8c7b6d5e4f3a2b1c0d9e8f7a6b5c"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    async def run(server: ModelServer) -> None:
        async with served_flow(home, server.url, docs) as flow:
            with pytest.raises(phase_errors.QueryAnalyzerError) as raised:
                await flow.process("s", QUESTION)
            assert key not in str(raised.value)

    with ModelServer(script(), api_key="another") as server:
        asyncio.run(run(server))
    for path in (home / "shared_state").rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
    for path in (home / "logs").rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path


def _plan(tool: str, **args: object) -> Plan:
    return Plan(
        decision="EXECUTE", route="coordinator", tool_requests=[ToolRequest(tool=tool, args=args)]
    )


TOOL_FAILURES = {
    "unknown tool": (_plan("doc.serch"), "config_error", "error"),
    "bad argument": (_plan("doc.search", limit="many"), "parse_error", "schema_failure"),
    "path outside": (_plan("file.read", path="/etc/passwd"), "permission_error", "permission"),
}


@pytest.mark.parametrize("kind", TOOL_FAILURES)
def test_a_tool_request_that_cannot_be_done_fails_the_coordinator(
    kind: str, home: Path, docs: Path
) -> None:
    plan, category, type_ = TOOL_FAILURES[kind]
    with pytest.raises(phase_errors.CoordinatorError):
        asyncio.run(scripted_flow(home, docs, planner=plan).process("s", QUESTION))
    (entry,) = open_entries(home)
    assert (entry["error_category"], entry["type"]) == (category, type_)
    assert entry["tool"] == plan.tool_requests[0].tool
    assert entry["context"]["tool_args"] == plan.tool_requests[0].args


def test_the_tools_after_a_failed_one_do_not_run(home: Path, docs: Path) -> None:
    requests = [
        ToolRequest(tool="doc.search", args={"query": "topic"}),
        ToolRequest(tool="file.read", args={"path": "docs/missing.md"}),
        ToolRequest(tool="doc.search", args={"query": "service"}),
    ]
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=requests)
    with pytest.raises(phase_errors.CoordinatorError):
        asyncio.run(scripted_flow(home, docs, planner=plan).process("s", QUESTION))
    started = [line["call"] for line in journal_lines(home) if line["event"] == "tool_started"]
    done = [line["call"] for line in journal_lines(home) if line["event"] == "tool_completed"]
    assert (started, done) == ([0, 1], [0])


def test_a_file_that_cannot_be_read_is_a_permission_intervention(home: Path, docs: Path) -> None:
    outside = docs.parent / "secret.txt"
    outside.write_text("hidden")
    (docs / "link.txt").symlink_to(outside)
    plan = _plan("file.read", path="docs/link.txt")
    with pytest.raises(phase_errors.CoordinatorError) as raised:
        asyncio.run(scripted_flow(home, docs, planner=plan).process("s", QUESTION))
    assert isinstance(raised.value.__cause__, PathRefusedError)
    assert "hidden" not in json.dumps(open_entries(home))


@pytest.mark.parametrize("phase", NAMES)
@pytest.mark.parametrize(
    "content", [None, "no fences", '+++\nrole = "mind"\ntemperature = 9\n+++\nx']
)
def test_a_recipe_that_is_malformed_names_its_file_and_line(
    phase: str, content: str | None, home: Path, docs: Path
) -> None:
    recipe = home / "recipes" / f"{phase}.md"
    recipe.parent.mkdir()
    if content is None:
        recipe.mkdir()  # there, and not readable as a file
    else:
        recipe.write_text(content)
    flow = scripted_flow(home, docs)
    answer = asyncio.run(flow.process_request("s", QUESTION))
    assert answer["error"] is (phase != "save")
    (entry,) = open_entries(home)
    assert (entry["phase"], entry["error_category"]) == (phase, "config_error")
    line = 3 if content and "temperature" in content else 1
    assert f"{recipe}:{line}:" in entry["error_message"]


@pytest.mark.parametrize(
    ("setting", "hint"),
    [('role = "voise"', "mend that line"), ('roll = "voice"', "settings are role, temperature")],
)
def test_a_setting_of_a_recipe_is_named_as_it_is_wrong(
    setting: str, hint: str, home: Path, docs: Path
) -> None:
    packaged = (recipe.PACKAGED / "synthesis.md").read_text()
    (home / "recipes").mkdir()
    (home / "recipes" / "synthesis.md").write_text(packaged.replace('role = "voice"', setting))
    asyncio.run(scripted_flow(home, docs).process_request("s", QUESTION))
    assert open_entries(home)[0]["context"]["hint"].startswith(hint)


def test_a_verdict_of_fail_halts(home: Path, docs: Path) -> None:
    with pytest.raises(phase_errors.ValidationError) as raised:
        asyncio.run(scripted_flow(home, docs, validation=verdict("FAIL")).process("s", QUESTION))
    assert raised.value.partial["synthesis"]["response"] == "A topic is a named bus."
    (entry,) = open_entries(home)
    assert (entry["type"], entry["severity"], entry["phase"]) == ("error", "medium", "validation")


def test_the_original_search_plan_is_what_runs(home: Path, docs: Path) -> None:
    turn = asyncio.run(scripted_flow(home, docs).process("s", QUESTION))
    (result,) = turn.sections.coordinator
    assert result.tool == SEARCH.tool_requests[0].tool
    assert result.claims[0].source == "docs/robots.md:5"


def test_condensing_may_not_add_a_memory(home: Path, docs: Path) -> None:
    folder = home / "shared_state" / "memory"
    folder.mkdir(parents=True)
    long = "the topic is a bus " * 1000
    (folder / "default.jsonl").write_text(json.dumps({"id": "m1", "text": long}) + "\n")
    invented = {"memories": [{"id": "m2", "text": "a lie"}]}
    with pytest.raises(phase_errors.ContextGathererError, match="memory:m2"):
        asyncio.run(scripted_flow(home, docs, context_gatherer=invented).process("s", QUESTION))
    kept = {"memories": [{"id": "m1", "text": "the topic is a bus"}]}
    flow = scripted_flow(home, docs, context_gatherer=kept)
    turn = asyncio.run(flow.process("s", QUESTION))
    assert turn.sections.context_gatherer is not None
    assert turn.sections.context_gatherer.memories[0].text == "the topic is a bus"
