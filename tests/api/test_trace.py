"""`unified-flow trace`: from a client's request id to the phases, the error, the intervention."""

from __future__ import annotations

import json
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
