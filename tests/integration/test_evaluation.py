"""An evaluation as a person runs it, against a model server on loopback: what is asked of the
server, what is kept, and what a second run still has to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from interventions.storage import jsonl
from tests import forked, in_process
from tests.answers import (
    ANALYSIS,
    APPROVE,
    COMPLETE,
    PROCEED,
    SEARCH,
    every_phase_by_model,
    open_entries,
)
from tests.servers.model_server import ModelServer, hang, refused_url, status
from unified_flow.turns.results import Draft

ROOT = Path(__file__).parents[2]
TOPIC = "A topic is a named bus over which nodes exchange messages."
ARTICLES = {
    "Topics": (TOPIC, "What is a topic?", "a named bus"),
    "Bread": ("Bread needs flour, water, salt and yeast.", "What does bread need?", "flour"),
    "Quist": (
        "The project was begun by Ada Quist in 2007.",
        "When was the project begun by Ada Quist?",
        "2007",
    ),
}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    data = [
        {
            "title": title,
            "paragraphs": [
                {
                    "context": context,
                    "qas": [{"id": title, "question": asked, "answers": [{"text": gold}]}],
                }
            ],
        }
        for title, (context, asked, gold) in ARTICLES.items()
    ]
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"data": data}))
    return path


def command(*args: str | Path, home: Path) -> list[str]:
    return ["eval", *map(str, args), "--home", str(home), "--json"]


def evaluated(*args: str | Path, home: Path, code: int = 0) -> dict[str, Any]:
    done = in_process.run("unified_flow", *command(*args, home=home), home=home)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def values(found: dict[str, Any]) -> dict[str, float]:
    return {name: each["value"] for name, each in found["measures"].items()}


def served(server: ModelServer) -> list[str]:
    return ["--model", "test-model", "--base-url", server.url]


def answering(server: ModelServer, **over: Any) -> None:
    """Every phase does its work; the voice says the same of every question, and cites nothing."""
    server.script = {
        "query_analyzer": ANALYSIS,
        "reflection": PROCEED,
        "planner": [SEARCH, COMPLETE] * 20,
        "synthesis": Draft(response="A topic is a named bus."),
        "validation": APPROVE,
        **over,
    }


def results(home: Path) -> list[dict[str, Any]]:
    (file,) = home.glob("shared_state/evaluations/*/results.jsonl")
    return list(jsonl.read(file))


def test_the_embedded_model_over_the_sets_own_documents(dataset: Path, home: Path) -> None:
    found = evaluated("run", dataset, "--unanswerable", "0.34", home=home)
    assert (found["questions"], found["unanswerable"]) == (4, 1)
    got = values(found)
    assert got["right"] == got["contained"] == got["abstained"] == got["retrieved"] == 1.0
    assert got["citations_support"] == got["gold_in_a_citation"] == 1.0
    assert found["phases"]["planner"]["visits"] == 2.0
    assert got["model_calls"] == 0.0  # rules cost nothing
    assert not list(home.glob("shared_state/turns/turn_*"))


def test_a_home_that_git_ignores_is_no_hindrance(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("shared_state/*\n")
    assert values(evaluated("run", dataset, home=tmp_path))["right"] == 1.0


def test_documents_of_ones_own(home: Path, docs: Path, tmp_path: Path) -> None:
    lines = [
        {"question": "What does bread need?", "answer": "flour", "docs": ["docs/cooking.txt"]},
        {"question": "What is a topic?", "answer": "named bus", "docs": ["docs/robots.md"]},
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = evaluated("run", path, "--unanswerable", "1", home=home)
    assert values(found)["right"] == 1.0
    path.write_text(json.dumps({"question": "What is a topic?", "answer": "named bus"}))
    first = evaluated("run", path, "--docs", docs, home=home)
    assert values(first)["right"] == 1.0
    text = (docs / "robots.md").read_text()
    (docs / "robots.md").write_text(text.replace("a named bus", "a lost word"))
    changed = evaluated("run", path, "--docs", docs, home=home)
    assert changed["run"] != first["run"], "another run, whose questions are asked anew"
    assert values(changed)["right"] == 0.0
    both = ["compare", found["run"], first["run"], "--home", str(home)]
    refused = in_process.run("unified_flow", "eval", *both, home=home)
    assert (refused.returncode, "no question in common" in refused.stderr) == (2, True)


@every_phase_by_model
def test_a_run_that_is_done_asks_nothing_and_one_begun_anew_asks_all(
    dataset: Path, home: Path, model_server: ModelServer
) -> None:
    answering(model_server)
    first = evaluated("run", dataset, *served(model_server), home=home)
    asked = len(model_server.requests)
    assert values(first)["tokens"] > 0
    assert evaluated("run", dataset, *served(model_server), home=home) == first
    assert len(model_server.requests) == asked
    again = evaluated("run", dataset, *served(model_server), "--again", home=home)
    assert len(model_server.requests) == 2 * asked
    assert again["run"] == first["run"]
    for name in ("right", "citations_support", "model_calls", "tokens"):
        assert values(again)[name] == values(first)[name]


@every_phase_by_model
def test_every_revision_is_a_call(dataset: Path, home: Path, model_server: ModelServer) -> None:
    bad = Draft(response="A topic is a named bus from Bergen.")
    good = Draft(response="A topic is a named bus.")
    answering(model_server, synthesis=[bad, bad, good])
    found = evaluated("run", dataset, "--sample", "1", *served(model_server), home=home)
    assert found["phases"]["synthesis"]["calls"] == 3.0
    assert values(found)["failed"] == 0.0


@every_phase_by_model
def test_a_failure_is_an_intervention_and_is_asked_again_when_wanted(
    dataset: Path, home: Path, model_server: ModelServer
) -> None:
    draft = Draft(response="A topic is a named bus.")
    answering(model_server, synthesis=[draft, status(500, "out of memory"), *[draft] * 3])
    found = evaluated("run", dataset, *served(model_server), home=home, code=1)
    assert values(found)["failed"] == pytest.approx(1 / 3, abs=1e-3)
    (entry,) = open_entries(home)
    assert found["interventions"] == [entry["id"]]
    (trouble,) = [line["trouble"] for line in results(home) if line["trouble"]]
    assert (trouble["phase"], trouble["error_type"]) == ("synthesis", "HTTPStatusError")
    found = evaluated("run", dataset, *served(model_server), "--retry-failed", home=home)
    assert values(found)["failed"] == 0.0


@every_phase_by_model
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on_where_it_was(
    end: signal.Signals, dataset: Path, home: Path, model_server: ModelServer
) -> None:
    draft = Draft(response="A topic is a named bus.")
    answering(model_server, synthesis=[draft, draft, hang(), draft])
    args: list[str | Path] = [dataset, *served(model_server), "--name", "killed"]
    words = [sys.executable, "-m", "unified_flow", *command("run", *args, home=home)]
    running = forked.Process(words, stderr=subprocess.PIPE, text=True)
    while sum(request.phase == "synthesis" for request in model_server.requests) < 3:
        assert running.poll() is None, running.stderr and running.stderr.read()
        time.sleep(0.01)
    os.kill(running.pid, end)
    running.communicate()
    assert running.returncode == (130 if end is signal.SIGINT else -9)
    assert len(results(home)) == 2
    file = home / "shared_state/evaluations/killed/results.jsonl"
    with file.open("ab") as torn:
        torn.write(b'{"id": "Quist", "quest')
    found = evaluated("run", *args, home=home)
    assert found["questions"] == len(results(home)) == 3
    assert sum(request.phase == "synthesis" for request in model_server.requests) == 4


def test_another_run_does_not_take_a_name_nor_a_run_that_is_going(
    dataset: Path, home: Path
) -> None:
    evaluated("run", dataset, "--name", "mine", home=home)
    other = command("run", dataset, "--name", "mine", "--seed", "2", home=home)
    done = in_process.run("unified_flow", *other, home=home)
    assert done.returncode == 2
    assert "the run mine is another one: seed differ" in done.stderr
    with FileLock(home / "shared_state/evaluations/mine/run.lock"):
        same = command("run", dataset, "--name", "mine", home=home)
        done = in_process.run("unified_flow", *same, home=home)
    assert (done.returncode, "somebody runs mine now" in done.stderr) == (2, True)


@every_phase_by_model
def test_a_change_of_a_recipe_is_held_against_what_was(
    dataset: Path, home: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    answering(model_server)
    recipes = tmp_path / "mine"
    recipes.mkdir()
    (recipes / "synthesis.md").write_text(
        '+++\nrole = "voice"\ntemperature = 0.0\ntoken_budget = 300\n'
        'reads = ["coordinator"]\n+++\nSay it with care.\n'
    )
    before = evaluated("run", dataset, *served(model_server), home=home)
    after = evaluated("run", dataset, *served(model_server), "--recipes", recipes, home=home)
    assert before["run"] != after["run"]
    careful = [r for r in model_server.requests if "Say it with care." in r.text]
    assert [request.phase for request in careful] == ["synthesis"] * 3
    found = evaluated("compare", before["run"], after["run"], home=home)
    assert found["measures"]["right"]["verdict"] == "no difference shown"


def test_recipes_are_looked_at_before_the_first_question(
    dataset: Path, home: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    recipes = tmp_path / "mine"
    recipes.mkdir()
    (recipes / "synthesis.md").write_text("+++\nrole = nobody\n+++\nSay it with care.\n")
    for named, said in ((recipes, "synthesis.md"), (tmp_path / "none", "none")):
        words = command("run", dataset, *served(model_server), "--recipes", named, home=home)
        done = in_process.run("unified_flow", *words, home=home)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert model_server.requests == []


def plainly(*args: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, ROOT / "benchmarks/plain.py", *args, "--home", home]
    return forked.run(words, capture_output=True, text=True, check=False)


def test_the_plain_pipeline_asks_once_and_can_be_compared(
    dataset: Path, home: Path, model_server: ModelServer
) -> None:
    said = {"response": "A topic is a named bus.", "found": True}
    model_server.script = {"plain": [said, {"response": "Not there.", "found": False}, "no JSON"]}
    done = plainly(dataset, *served(model_server), home=home)
    assert done.returncode == 1, done.stderr
    name = json.loads(done.stdout)["run"]
    found = evaluated("show", name, home=home)
    assert values(found)["model_calls"] == 1.0
    assert values(found)["failed"] == pytest.approx(1 / 3, abs=1e-3)
    assert values(found)["abstained_falsely"] == pytest.approx(1 / 3, abs=1e-3)
    assert all("<document" in request.text for request in model_server.requests)
    assert plainly(dataset, *served(model_server), home=home).stdout == done.stdout
    assert len(model_server.requests) == 3
    flow = evaluated("run", dataset, home=home)["run"]
    assert evaluated("compare", name, flow, home=home)["questions"] == 3


def test_the_plain_pipeline_needs_a_language_model(dataset: Path, home: Path) -> None:
    done = plainly(dataset, home=home)
    assert done.returncode == 1
    assert "the plain pipeline needs a language model" in done.stderr


def test_runs_are_listed_and_shown(dataset: Path, home: Path) -> None:
    name = evaluated("run", dataset, home=home)["run"]
    (row,) = evaluated("list", home=home)["runs"]
    assert row == {"run": name, "model": "embedded", "answered": 3, "right": 1.0}
    words = command("show", name, "--wrong", home=home)[:-1]
    shown = in_process.run("unified_flow", *words, home=home).stdout
    assert f"{name}: 3 questions, 0 without an answer; model embedded" in shown
    assert "gold answer in the response" in shown


def test_ten_failures_in_a_row_end_a_run_and_name_their_cause(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    lines = [json.dumps({"question": f"What is topic {n}?", "answer": "a bus"}) for n in range(15)]
    (tmp_path / "own.jsonl").write_text("\n".join(lines) + "\n")
    (home / "unified_flow.toml").write_text("[queue]\nmax_per_error_type = 3\n")
    at = ["--model", "m", "--base-url", refused_url(), "--docs", docs]
    words = command("run", tmp_path / "own.jsonl", *at, home=home)
    done = forked.run(
        [sys.executable, "-m", "unified_flow", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["questions"] == 10
    assert "stopped after 10 failures in a row; the last: query_analyzer failed" in done.stderr
    assert "--retry-failed" in done.stderr
    assert done.stderr.count("hit limit (3)") == 1
