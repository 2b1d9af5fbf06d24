"""The programs in examples/, each run as its page says."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.answers import COMPLETE, NOTHING_CLAIMED, open_entries, script
from tests.servers.model_server import ModelServer, status
from unified_flow.turns.results import Plan, ToolRequest

ROOT = Path(__file__).parents[2]
HOURS = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[ToolRequest(tool="opening_hours", args={"place": "museum"}, goal_id="g1")],
)


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNIFIED_FLOW_HOME", str(home))


def run(name: str, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", f"examples/{name}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_page_names_each_of_them() -> None:
    page = (ROOT / "examples/README.md").read_text()
    programs = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert {name for name in programs if f"python examples/{name}" in page} == programs


def test_ask() -> None:
    assert "architecture/LLM-ROLES/llm-roles-reference.md" in run("ask.py")


def test_own_tool(monkeypatch: pytest.MonkeyPatch, model_server: ModelServer) -> None:
    said = NOTHING_CLAIMED.model_copy(update={"response": "From 10 to 17."})
    model_server.script = script(planner=[HOURS, COMPLETE], synthesis=said)
    monkeypatch.setenv("UNIFIED_FLOW_MODEL", "m")
    monkeypatch.setenv("UNIFIED_FLOW_BASE_URL", model_server.url)
    shown = run("own_tool.py")
    assert "From 10 to 17." in shown
    assert "opening_hours: The museum is open from 10 to 17" in shown


def test_own_model() -> None:
    assert "llm-roles-reference.md" in run("own_model.py")


def test_other_program(home: Path) -> None:
    shown = run("other_program.py")
    entries = open_entries(home)
    assert [entry["phase"] for entry in entries] == ["parse", "parse"]
    assert all(entry["id"] in shown for entry in entries)
    assert shown.endswith("4 pieces\n")


def test_fastapi_app() -> None:
    words = [sys.executable, "-m", "uvicorn", "examples.fastapi_app:app", "--port", "0"]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = (re.search(r"running on (\S+)", line) for line in process.stderr)
            url = next(found[1] for found in said if found)
            found = httpx.post(f"{url}/answers", json={"question": "What is a turn?"}, timeout=60)
            empty = httpx.post(f"{url}/answers", json={"question": " "}, timeout=60)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
    assert found.status_code == 200
    assert any("architecture/" in source for source in found.json()["sources"])
    assert (empty.status_code, empty.json()) == (400, {"message": "the question must not be empty"})


def test_nightly_batch(tmp_path: Path) -> None:
    questions, answers = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("What is a recipe?\nWhat is a verdict?\n")
    run("nightly_batch.py", str(questions), str(answers))
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [line["question"] for line in lines] == ["What is a recipe?", "What is a verdict?"]
    assert all(line["answer"] for line in lines)


def test_a_question_of_a_batch_that_fails_waits_in_the_queue(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, model_server: ModelServer
) -> None:
    monkeypatch.setenv("UNIFIED_FLOW_MODEL", "m")
    monkeypatch.setenv("UNIFIED_FLOW_BASE_URL", model_server.url)
    model_server.script = script(query_analyzer=status(500))
    questions, answers = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("What is a recipe?\n")
    run("nightly_batch.py", str(questions), str(answers), code=1)
    (entry,) = open_entries(home)
    assert json.loads(answers.read_text())["intervention"] == entry["id"]
