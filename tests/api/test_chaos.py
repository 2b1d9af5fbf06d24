"""What goes wrong behind the service: each has its documented answer.

graceful-degradation-adr.md over HTTP: statuses, texts, chunks and Retry-After, on a real server.
SOAK=1 has many clients meet all of it at once, for longer.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.answers import COMPLETE, IN_ENVIRONMENT, SEARCH, every_phase_by_model, script
from tests.api.conftest import TOPICS
from tests.api.service import Service, model_flags, serving
from tests.servers.model_server import (
    Behaviour,
    Connection,
    ModelServer,
    answer,
    cut_body,
    cut_stream,
    empty_choices,
    endless,
    hang,
    rate_limited,
    raw,
    status,
    trickle,
)

GENERATION_S = 0.5
PIPELINE_S = 3.0
SETTINGS = f"""
policy = "graceful"

[graceful]
search_timeout_s = 0.8
generation_timeout_s = {GENERATION_S}
pipeline_timeout_s = {PIPELINE_S}

[serve]
rate_limit = "off"
"""
ASKED_FOR_LONG = 300 if os.environ.get("SOAK") else 24


def reset() -> Behaviour:
    return lambda connection: connection.hang_up()


def plan(connection: Connection) -> None:
    """Searches once, in every turn."""
    searched = '<section name="coordinator">' in connection.request.text
    answer(COMPLETE if searched else SEARCH)(connection)


def always(**over: Any) -> dict[str, Any]:
    """A good answer for each phase, however often it runs."""
    return {**script(), "planner": plan, **over}


LLM_DOWN = "LLM service temporarily unavailable. Please try again."
SEARCH_DOWN = "Vector search temporarily unavailable. Please try again."
TOO_LONG = "Request processing timed out. Please try again."


@dataclass(frozen=True)
class Trouble:
    """What a phase's call of the model meets."""

    name: str
    behaviour: Behaviour
    phase: str = "synthesis"


TROUBLES = (
    Trouble("hangs", hang()),
    Trouble("hangs at the first call", hang(), "query_analyzer"),
    Trouble("resets", reset()),
    Trouble("resets in the middle of the body", cut_body()),
    Trouble("trickles", trickle()),
    Trouble("sends garbage", raw(b"\x00\xff<html>")),
    Trouble("sends no choice", empty_choices()),
    Trouble("breaks off a stream", cut_stream()),
    Trouble("sends without an end", endless()),
    Trouble("fails", status(500)),
    Trouble("is unavailable", status(503), "planner"),
)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def chaotic(tmp_path_factory: pytest.TempPathFactory, upstream: ModelServer) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("chaos")
    docs = place / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text(TOPICS)
    home = place / "home"
    flags = model_flags(upstream.url)
    with serving(home, *flags, docs=docs, settings=SETTINGS, env=IN_ENVIRONMENT) as running:
        upstream.script = always()
        assert running.ask().status_code == 200
        yield running


def logged(service: Service, response: httpx.Response) -> dict[str, Any]:
    """The one line of the request."""
    (line,) = (
        line for line in service.log if line["request_id"] == response.headers["X-Request-ID"]
    )
    return line


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_a_model_that_fails_leaves_the_chunks(
    trouble: Trouble, chaotic: Service, upstream: ModelServer
) -> None:
    upstream.script = always(**{trouble.phase: trouble.behaviour})
    response = chaotic.ask()
    body = response.json()

    assert response.status_code == 503
    assert (body["code"], body["detail"], body["message"]) == ("LLM_ERROR", LLM_DOWN, LLM_DOWN)
    assert body["answer"] == "Generation service temporarily unavailable. Retrieved content below:"
    assert "named bus" in body["sources"][0]["excerpt"]
    assert body["metadata"]["confidence_score"] == 0.0
    assert body["metadata"]["error_type"] == "llm_service_unavailable"
    line = logged(chaotic, response)
    assert line["error"] is True
    assert line["intervention_id"]


def test_a_model_that_limits_the_rate_says_when_to_come_back(
    chaotic: Service, upstream: ModelServer
) -> None:
    upstream.script = always(reflection=rate_limited(7))
    response = chaotic.ask()
    assert (response.status_code, response.headers["Retry-After"]) == (429, "7")
    assert response.json()["code"] == "RATE_LIMITED"
    assert "sources" not in response.json()
    upstream.script = always(reflection=status(503, retry_after="9"))
    response = chaotic.ask()
    assert (response.status_code, response.headers["Retry-After"]) == (503, "9")


@every_phase_by_model
def test_a_turn_that_takes_too_long_is_ended(tmp_path: Path, upstream: ModelServer) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text(TOPICS)
    settings = SETTINGS.replace(f"= {GENERATION_S}\n", "= 60\n", 2)
    settings = settings.replace(f"= {PIPELINE_S}\n", "= 1.0\n")
    upstream.script = always(planner=hang())
    flags = model_flags(upstream.url)
    with serving(tmp_path / "home", *flags, docs=docs, settings=settings) as slow:
        response = slow.ask()
        assert response.status_code == 503
        assert response.json()["detail"] == TOO_LONG
        assert response.json()["code"] == "INTERNAL_ERROR"
        (entry,) = slow.triage("GET", "/interventions").json()["interventions"]
        assert entry["error_type"] == "PipelineTimeoutError"


def test_a_bad_question_is_refused_before_anything_is_asked(
    chaotic: Service, upstream: ModelServer
) -> None:
    before = len(upstream.requests)
    for question in ("", "x" * 2001):
        response = chaotic.ask(question)
        assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_ERROR")
    assert len(upstream.requests) == before


def test_an_index_that_disappears_and_comes_back(tmp_path: Path, upstream: ModelServer) -> None:
    """In the middle of serving: at once, and without asking the model to answer."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text(TOPICS)
    upstream.script = always()
    index = tmp_path / "home" / "shared_state" / "index"
    flags = model_flags(upstream.url)
    with serving(tmp_path / "home", *flags, docs=docs, settings=SETTINGS) as running:
        assert running.ask().status_code == 200
        index.rename(index.with_name("gone"))
        before = len(upstream.requests)
        response = running.ask()
        assert (response.status_code, response.json()["detail"]) == (503, SEARCH_DOWN)
        assert response.json()["code"] == "RETRIEVAL_ERROR"
        assert len(upstream.requests) - before <= 1
        index.with_name("gone").rename(index)
        assert running.ask().status_code == 200


def test_an_index_that_is_written_over(tmp_path: Path, upstream: ModelServer) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text(TOPICS)
    upstream.script = always()
    index = tmp_path / "home" / "shared_state" / "index" / "documents.sqlite3"
    flags = model_flags(upstream.url)
    with serving(tmp_path / "home", *flags, docs=docs, settings=SETTINGS) as running:
        index.write_bytes(b"not a database, " * 400)
        response = running.ask()
    assert (response.status_code, response.json()["detail"]) == (503, SEARCH_DOWN)


def test_many_clients_meet_all_of_it_at_once(chaotic: Service, upstream: ModelServer) -> None:
    """Everybody is answered as documented, and the service is as well as before."""
    troubles = [trouble.behaviour for trouble in TROUBLES]
    chance = random.Random(7)

    def any_of_it(connection: Any) -> None:
        chance.choice(troubles)(connection)

    upstream.script = always(synthesis=any_of_it)

    async def run() -> list[tuple[int, str]]:
        limits = httpx.Limits(max_connections=40)
        seen = []

        async def one() -> None:
            response = await http.post("/query", json={"question": "What is a topic?"})
            seen.append((response.status_code, response.json()["code"]))

        async with httpx.AsyncClient(base_url=chaotic.url, timeout=60, limits=limits) as http:
            for _ in range(ASKED_FOR_LONG // 12):
                await asyncio.gather(*(one() for _ in range(12)))
        return seen

    seen = asyncio.run(run())
    assert len(seen) == ASKED_FOR_LONG // 12 * 12
    # Where the machine is too busy for the whole turn, that is the problem the client gets.
    assert set(seen) <= {(503, "LLM_ERROR"), (503, "INTERNAL_ERROR")}
    upstream.script = always()
    assert chaotic.ask().status_code == 200
    queue = chaotic.triage("GET", "/interventions").json()
    assert len(queue["interventions"]) <= 50
