"""What became of a request that failed: for its client in the trace that it asked for, for whoever
has its id with `unified-flow trace`."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interventions import InterventionQueue
from tests import forked
from tests.answers import script
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import ModelServer, status
from unified_flow.engine.telemetry.query_log import RequestLine


@pytest.fixture
def broken(folder: Path, docs: Path) -> Iterator[Service]:
    with (
        ModelServer(script(synthesis=status(500, "the card of Ada Quist"))) as model,
        serving(folder, *model_flags(model.url), docs=docs) as service,
    ):
        yield service


def _trace(service: Service, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unified_flow", "trace", *arguments]
    return forked.run(
        [*command, "--home", str(service.home)], capture_output=True, text=True, check=False
    )


def test_the_trace_of_an_error_shows_all_five_agents(broken: Service) -> None:
    headers = {"X-Request-ID": "2025-11-16-abc123", "Accept-Language": "sv"}
    answer = broken.ask(headers=headers, trace=True)
    body = answer.json()
    trace = body["details"].pop("trace")
    assert body == {  # else as in rag-error-model.md, "Grundformat"
        "error": True,
        "type": "LlmError",
        "code": "LLM_ERROR",
        "message": "Kunde inte generera svar just nu.",
        "request_id": "2025-11-16-abc123",
        "details": {"stage": "llm"},
    }
    agents = {agent["agent_name"]: agent for agent in trace["agents"]}
    assert {name: agent["success"] for name, agent in agents.items()} == {
        "QueryRouterAgent": True,
        "QdrantRetrievalAgent": True,
        "AnswerSynthesisAgent": False,
        "ErrorRecoveryAgent": True,
        "RAGChatAgent": False,
    }
    assert agents["AnswerSynthesisAgent"]["error_details"] == {
        "error_type": "llm",
        "user_safe_message": (
            "Ett fel uppstod och jag behöver hjälp. En utvecklare har underrättats.\n\n"
            "Fel: Kunde inte generera svar just nu."
        ),
        "retry_able": True,
    }
    (handled,) = agents["ErrorRecoveryAgent"]["result_data"]["phases"]
    assert (handled["name"], handled["status"]) == ("synthesis", "failed")
    assert trace["retrievals"][0]["total_results"] >= 1
    assert [message["role"] for message in trace["messages"]] == ["user"]
    for inner in ("Quist", "Traceback", str(broken.home), "HTTPStatusError", "127.0.0.1"):
        assert inner not in answer.text


def test_the_trace_of_a_wrong_key_asks_nobody_to_try_again(folder: Path, docs: Path) -> None:
    with (
        ModelServer(script(synthesis=status(401, "no"))) as model,
        serving(folder, *model_flags(model.url), docs=docs) as service,
    ):
        agents = service.ask(trace=True).json()["details"]["trace"]["agents"]
    assert agents[-1]["error_details"]["retry_able"] is False


@pytest.mark.parametrize("stream", [False, True])
def test_the_trace_of_a_question_that_is_refused(stream: bool, broken: Service) -> None:
    details = broken.ask(" ", trace=True, stream=stream).json()["details"]
    assert details["field"] == "query"
    router = details["trace"]["agents"][0]
    assert (router["agent_name"], router["success"]) == ("QueryRouterAgent", False)
    assert router["error_details"] == {
        "error_type": "validation",
        "user_safe_message": "The question must not be empty.",
        "retry_able": False,
    }


def test_the_trace_in_the_error_event_of_a_stream(broken: Service) -> None:
    last = broken.ask(trace=True, stream=True).text.strip().split("\n\n")[-1]
    name, data = last.split("\n", 1)
    assert name == "event: error"
    agents = json.loads(data.removeprefix("data: "))["details"]["trace"]["agents"]
    assert [agent["agent_name"] for agent in agents if not agent["success"]] == [
        "AnswerSynthesisAgent",
        "RAGChatAgent",
    ]


def test_the_trace_of_an_answer_that_was_not_saved(folder: Path, docs: Path) -> None:
    with serving(folder, docs=docs) as service:
        service.ask(session_id="s1")
        with sqlite3.connect(folder / "shared_state" / "sessions.sqlite3") as store:
            store.execute(
                "CREATE TRIGGER full BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'x'); END"
            )
        store.close()
        answer = service.ask("What is a service?", session_id="s2", trace=True)
    assert answer.status_code == 200
    assert answer.json()["metadata"]["degraded"] is True
    *_, recovery, whole = answer.json()["trace"]["agents"]
    assert [visit["name"] for visit in recovery["result_data"]["phases"]] == ["save"]
    assert (whole["agent_name"], whole["success"]) == ("RAGChatAgent", False)
    assert whole["error_details"]["error_type"] == "database"
    line = service.log[-1]
    assert (line["type"], line["code"]) == ("RetrievalError", "RETRIEVAL_ERROR")
    assert (line["status"], line["degraded"], line["http"]["status"]) == ("answered", True, 200)


def test_a_failed_request(broken: Service) -> None:
    answer = broken.ask(headers={"X-Request-ID": "2025-11-16-abc123"})
    assert answer.status_code == 502
    shown = _trace(broken, "2025-11-16-abc123")
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("request  2025-11-16-abc123  20")
    assert lines[1].startswith("http     POST /query  502  ")
    assert [line.split()[0] for line in lines if line.startswith("  ") and " ms " in line] == [
        "query_analyzer",
        "reflection",
        "context_gatherer",
        "planner",
        "coordinator",
        "planner",
        "synthesis",
    ]
    assert "error    LLM_ERROR (LlmError)" in lines
    waiting = InterventionQueue(broken.home).entries()[0]
    assert any(line.startswith(f"waiting  {waiting['id']}  open, high") for line in lines)


def test_as_json_and_once_it_is_resolved(broken: Service) -> None:
    broken.ask(headers={"X-Request-ID": "r-1"})
    queue = InterventionQueue(broken.home)
    queue.resolve(queue.entries()[0]["id"], "restarted the server")
    (request,) = json.loads(_trace(broken, "r-1", "--json").stdout)["requests"]
    assert request["code"] == "LLM_ERROR"
    assert request["phases"][-1]["agent"] == "AnswerSynthesisAgent"
    assert request["intervention"]["state"] == "resolved"
    assert request["intervention"]["resolution"] == "restarted the server"


def test_every_line_has_every_key(broken: Service) -> None:
    broken.ask()
    broken.ask("")
    broken.http.get("/errors")
    turn, refused, served = broken.log
    assert set(turn) == set(refused) == set(served) == set(RequestLine.model_fields)
    assert [line["status"] for line in broken.log] == ["failed", "refused", "served"]
    assert (turn["question_chars"], turn["session_id"][:5]) == (len("What is a topic?"), "http_")
    assert (refused["turn_id"], refused["phases"], refused["error"]) == (None, [], True)
    assert [RequestLine.model_validate(line).model_dump(mode="json") for line in broken.log] == (
        broken.log
    )


def test_a_line_that_is_torn_or_foreign_is_none_of_a_request(broken: Service) -> None:
    broken.ask(headers={"X-Request-ID": "r-4"})
    with (broken.home / "logs/rag_queries.jsonl").open("a") as log:
        log.write('{"request_id":"r-4","phases":7}\n{"request_id":"r-4","tim')
    shown = json.loads(_trace(broken, "r-4", "--json").stdout)
    assert [request["status"] for request in shown["requests"]] == ["failed"]


def test_a_refused_request_and_one_that_nobody_knows(broken: Service) -> None:
    broken.ask("", headers={"X-Request-ID": "r-2"})
    shown = _trace(broken, "r-2")
    assert "error    VALIDATION_ERROR (ValidationError)" in shown.stdout
    unknown = _trace(broken, "r-3")
    assert unknown.returncode == 3
    assert "no request r-3 is known" in unknown.stderr


def test_the_log_holds_nothing_that_was_said(broken: Service) -> None:
    broken.ask("Where does Ada Quist keep her card?", user_id="ada", session_id="s1")
    line = json.dumps(broken.log)
    for said in ("Quist", "card", "ada", "127.0.0.1"):
        assert said not in line
