"""What is stored of a user: without a session nothing, and nothing comes back in an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.answers import ANALYSIS, COMPLETE, IN_ENVIRONMENT, SEARCH, script
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import ModelServer
from unified_flow.turns.results import Plan, ToolRequest

SAID = "Remember that my name is Kalle."
WRITE = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[
        ToolRequest(tool="memory.create", args={"text": "my name is Kalle"}, goal_id="g1"),
        *SEARCH.tool_requests,
    ],
)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def model_service(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("privacy")
    docs = place / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text("# Topics\n\nA topic is a named bus.\n")
    settings = '[serve]\nrate_limit = "off"\n[tools]\nallow = ["memory.*"]\n'
    flags = model_flags(model.url)
    with serving(
        place / "home", *flags, docs=docs, settings=settings, env=IN_ENVIRONMENT
    ) as service:
        yield service


def _memories(home: Path) -> list[str]:
    return [path.read_text() for path in (home / "shared_state").rglob("memory/*.jsonl")]


def _prompts(model: ModelServer, ask: Callable[[], object]) -> str:
    before = len(model.requests)
    ask()
    return "\n".join(request.text for request in model.requests[before:] if request.body)


def test_a_rule_based_model_remembers_nothing_without_a_session(service: Service) -> None:
    answer = service.ask(SAID)
    assert answer.status_code == 200, answer.text
    assert _memories(service.home) == []
    through_openai = {"messages": [{"role": "user", "content": SAID}]}
    service.http.post("/v1/chat/completions", json=through_openai)
    assert _memories(service.home) == []


def test_a_model_that_remembers_all_the_same_is_refused(
    model_service: Service, model: ModelServer
) -> None:
    model.script = script(planner=[WRITE, COMPLETE])
    prompts = _prompts(model, lambda: model_service.ask(SAID))
    assert "memory.create" not in prompts, "a tool that may not be used is not offered"
    assert "human.ask" not in prompts, "nobody is there who could answer"
    assert _memories(model_service.home) == []
    (waiting,) = model_service.triage("GET", "/interventions").json()["interventions"]
    assert waiting["tool"] == "memory.create"


def test_what_is_remembered_of_a_user_is_not_told_to_a_question_of_no_session(
    model_service: Service, model: ModelServer
) -> None:
    model.script = script(planner=[WRITE, COMPLETE])
    assert model_service.ask(SAID, session_id="s1", user_id="kalle").status_code == 200
    assert len(_memories(model_service.home)) == 1

    asking = ANALYSIS.model_copy(update={"resolved_query": "What is my name?"})
    for who, known in (
        ({"session_id": "s2", "user_id": "kalle"}, True),
        ({"user_id": "kalle"}, False),
        ({}, False),
        ({"session_id": "s3", "user_id": "lisa"}, False),
    ):
        model.script = script(query_analyzer=asking)
        prompts = _prompts(model, partial(model_service.ask, "What is my name?", **who))
        assert ("is Kalle" in prompts) is known, who
