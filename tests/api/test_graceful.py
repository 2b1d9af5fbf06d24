"""The ADR's table as a client sees it: the same requests to a service of either policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.answers import IN_ENVIRONMENT, every_phase_by_model, script
from tests.answers import SEARCH as SEARCH_AGAIN
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import ModelServer, hang, rate_limited, raw, status

SETTINGS = """
timeout_s = 1.0
[serve]
rate_limit = "500/second"
[graceful]
generation_timeout_s = {generation}
pipeline_timeout_s = {pipeline}
"""
SEARCH = "Vector search temporarily unavailable. Please try again."
MODEL = "LLM service temporarily unavailable. Please try again."
LIMIT = "Rate limit exceeded. Maximum 5 requests per second."
PIPELINE = "Request processing timed out. Please try again."
FALLBACK = "Generation service temporarily unavailable. Retrieved content below:"


@dataclass
class Both:
    """The services of the two policies, and the model that both ask."""

    model: ModelServer
    fail_fast: Service
    graceful: Service

    def ask(self, policy: str, question: str = "What is a topic?") -> httpx.Response:
        service: Service = getattr(self, policy)
        return service.ask(question)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    place = tmp_path_factory.mktemp("both")
    docs = place / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text("# Robots\n\n## Topics\n\nA topic is a named bus.\n")
    settings = SETTINGS.format(generation=0.5, pipeline=10.0)
    with ExitStack() as stack:
        model = stack.enter_context(ModelServer(script()))
        running = {
            policy: stack.enter_context(
                serving(
                    place / policy,
                    *model_flags(model.url),
                    *("--policy", policy),
                    docs=docs,
                    settings=settings,
                    env=IN_ENVIRONMENT,
                )
            )
            for policy in ("fail_fast", "graceful")
        }
        both = Both(model, **running)
        for policy in running:
            model.script = script()
            assert both.ask(policy).status_code == 200, "and the documents are indexed"
        yield both


Expected = tuple[int, str, str | None]  # status, code, the graceful text

TABLE: dict[str, tuple[Callable[[], Any], Expected, Expected]] = {
    "model rate limited": (
        lambda: script(planner=rate_limited(7)),
        (429, "RATE_LIMITED", None),
        (429, "RATE_LIMITED", LIMIT.replace("5", "500")),
    ),
    "model fails": (
        lambda: script(synthesis=status(500)),
        (502, "LLM_ERROR", None),
        (503, "LLM_ERROR", MODEL),
    ),
    "model too slow": (
        lambda: script(query_analyzer=hang()),
        (502, "LLM_ERROR", None),
        (503, "LLM_ERROR", MODEL),
    ),
    "a loop that comes to no end": (
        lambda: script(planner=[SEARCH_AGAIN] * 20),
        (500, "INTERNAL_ERROR", None),
        (503, "INTERNAL_ERROR", MODEL),
    ),
    "model talks nonsense": (
        lambda: script(reflection=raw(b"<html>")),
        (502, "LLM_ERROR", None),
        (503, "LLM_ERROR", MODEL),
    ),
}


@pytest.mark.parametrize("policy", ["fail_fast", "graceful"])
@pytest.mark.parametrize("row", TABLE)
def test_a_model_that_does_not_answer(row: str, policy: str, both: Both) -> None:
    broken, fast, graceful = TABLE[row]
    both.model.script = broken()
    status_code, code, text = fast if policy == "fail_fast" else graceful
    answer = both.ask(policy)
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status_code, code)
    assert ("detail" in body) == (policy == "graceful")
    if text is not None:
        assert body["message"] == body["detail"] == text
    if status_code == 429:
        assert answer.headers["Retry-After"] == "7"
    if status_code == 503:
        assert body["answer"] == FALLBACK
        (source,) = body["sources"]
        assert source["section_title"] == "Robots > Topics"
        assert "named bus" in source["excerpt"]
        assert body["metadata"] == {
            "confidence_score": 0.0,
            "num_sources_retrieved": 1,
            "error_type": "llm_service_unavailable",
            "degraded": True,
        }
    service: Service = getattr(both, policy)
    line = service.log[-1]
    assert line["degraded"] is (policy == "graceful"), "marked, too"
    assert line["intervention_id"], "an intervention exists all the same"


@pytest.mark.parametrize(("policy", "expected"), [("fail_fast", 502), ("graceful", 503)])
def test_retrieval_offline(policy: str, expected: int, both: Both) -> None:
    service: Service = getattr(both, policy)
    index = service.home / "shared_state" / "index" / "documents.sqlite3"
    both.model.script = script()
    before = len(both.model.requests)
    index.rename(index.with_suffix(".away"))
    try:
        answer = both.ask(policy)
    finally:
        index.with_suffix(".away").rename(index)
    body = answer.json()
    assert (answer.status_code, body["code"]) == (expected, "RETRIEVAL_ERROR")
    assert body["details"] == {"stage": "retriever", "workspace_id": "default"}
    assert "sources" not in body
    if policy == "graceful":
        assert body["detail"] == SEARCH
        phases = [request.phase for request in both.model.requests[before:]]
        assert "synthesis" not in phases, "no generation is attempted"


@pytest.mark.parametrize("policy", ["fail_fast", "graceful"])
def test_an_invalid_question(policy: str, both: Both) -> None:
    for question in ("", "x" * 2001):
        answer = both.ask(policy, question)
        assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_ERROR")


@every_phase_by_model
def test_the_pipeline_as_a_whole_takes_too_long(folder: Path, docs: Path) -> None:
    settings = SETTINGS.format(generation=9.0, pipeline=0.5)
    with (
        ModelServer(script(query_analyzer=hang())) as model,
        serving(
            folder, *model_flags(model.url), "--policy", "graceful", docs=docs, settings=settings
        ) as service,
    ):
        answer = service.ask()
    body = answer.json()
    assert answer.status_code == 503
    assert (body["code"], body["type"]) == ("INTERNAL_ERROR", "InternalRagError")
    assert body["message"] == body["detail"] == PIPELINE


def test_nothing_found_is_a_success_without_confidence(folder: Path, docs: Path) -> None:
    with serving(folder, "--policy", "graceful", docs=docs) as service:
        answer = service.ask("Which composer wrote the opera about lighthouses?")
        assert answer.status_code == 200
        body = answer.json()
        assert body["answer"] == "No relevant content found in the textbook about your query."
        assert body["sources"] == []
        assert body["metadata"]["confidence_score"] == 0.0
        assert body["metadata"]["num_sources_retrieved"] == 0
