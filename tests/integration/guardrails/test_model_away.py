"""A model that fails: further tries, and then silence."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from tests.answers import (
    COMPLETE,
    DRAFT,
    every_phase_by_model,
    open_entries,
    script,
    started_phases,
)
from tests.integration.guardrails.conversing import (
    Waits,
    decided,
    flow_at,
    lines,
    remembered,
    say,
)
from tests.servers.model_server import ModelServer, rate_limited, refused_url, status
from unified_flow.api.app import make_app
from unified_flow.guardrails.store import GuardrailStore
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire


def test_a_model_that_is_down_for_two_attempts_is_asked_a_third_time(
    home: Path, docs: Path, rules: GuardrailStore, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelServer() as server:
        good = script(planner=[COMPLETE])
        server.script = good | {"reflection": [status(503), rate_limited(9), good["reflection"]]}
        waits = Waits()
        flow = flow_at(home, waits, policy="silent", base_url=server.url, docs=[docs])
        [turn] = say(flow, "What is a topic?")
    assert turn.response == DRAFT.response
    assert (turn.should_respond, turn.retry_count) == (True, 2)
    assert waits.seconds == [2.0, 9.0]
    said = lines(caplog)
    assert said[0].startswith("[LLM RETRY] Attempt 1/3 failed: 503")
    assert said[1].startswith("[LLM RETRY] Attempt 2/3 failed: 429")
    assert said[2] == "[LLM RETRY] Success on attempt 3/3"
    assert open_entries(home) == []
    assert decided(rules)[0].retry_count == 2


def test_a_model_that_is_down_for_all_three_ends_in_silence(
    home: Path, docs: Path, rules: GuardrailStore, caplog: pytest.LogCaptureFixture
) -> None:
    waits = Waits()
    flow = flow_at(home, waits, policy="silent", base_url=refused_url(), docs=[docs])
    [turn] = say(flow, "What is a topic?", user_id="abc123")
    assert turn.response is None
    assert (turn.should_respond, turn.retry_count) == (False, 3)
    assert turn.error_message is not None
    assert turn.error_message.startswith("LLM_ERROR: Connection refused")
    assert waits.seconds == [2.0, 4.0]
    said = lines(caplog)
    assert [line.split(" failed")[0] for line in said[:2]] == [
        "[LLM RETRY] Attempt 1/3",
        "[LLM RETRY] Attempt 2/3",
    ]
    assert said[2].startswith(
        "[LLM ERROR] Max retries (3) reached for user abc123: Connection refused"
    )
    assert said[3].startswith(
        "[SILENT FAILURE] LLM error for user abc123: LLM_ERROR: Connection refused"
    )
    [entry] = open_entries(home)
    assert (entry["phase"], entry["error_type"]) == (started_phases(home)[-1], "ConnectError")
    [decision] = decided(rules)
    assert (decision.decision, decision.outcome, decision.retry_count) == (
        "ignore",
        "llm_error",
        3,
    )
    assert decision.snapshot_json["intervention_id"] == entry["id"]


def test_the_last_attempt_is_spoken_of_only_where_it_was_made(
    home: Path, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Three further tries in all, but of two phases; what ends the turn had none."""
    good = script(planner=[COMPLETE])
    with ModelServer(good) as server:
        server.script = good | {
            "reflection": [status(503), status(503), good["reflection"]],
            "synthesis": [status(503), good["synthesis"]],
            "validation": status(401),
        }
        flow = flow_at(home, Waits(), policy="silent", base_url=server.url, docs=[docs])
        [turn] = say(flow, "What is a topic?")
    assert (turn.should_respond, turn.retry_count) == (False, 3)
    said = [line.split("]")[0] for line in lines(caplog)]
    assert said[-1] == "[SILENT FAILURE"
    assert "[LLM ERROR" not in said


@every_phase_by_model
@pytest.mark.parametrize("failures", [2, 3])
def test_over_http_too_a_model_may_be_down_for_two_attempts_and_not_for_three(
    home: Path, docs: Path, rules: GuardrailStore, failures: int
) -> None:
    waits = Waits()
    good = script(planner=[COMPLETE])
    down = good | {"reflection": [status(503)] * failures + [good["reflection"]]}

    async def ask(server: ModelServer) -> httpx.Response:
        own = {"policy": "silent", "base_url": server.url, "docs": [docs]}
        app = make_app(wire(home, model="test-model", pause=waits, **own))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1"
            ) as client,
        ):
            asked = {"question": "What is a topic?", "session_id": "s1"}
            return await client.post("/query", json=asked)

    with ModelServer(down) as server:
        reply = asyncio.run(ask(server))
    told = reply.json()
    assert (reply.status_code, told["should_respond"]) == (200, failures == 2)
    assert told["answer"] == (DRAFT.response if failures == 2 else "")
    assert waits.seconds == [2.0, 4.0]
    outcome = "passed" if failures == 2 else "llm_error"
    assert [(d.outcome, d.retry_count) for d in decided(rules)] == [(outcome, failures)]


@every_phase_by_model
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_cancelled_within_a_turn_ends_in_silence_too(
    home: Path, docs: Path, stream: bool
) -> None:
    async def cancelled(seconds: float) -> None:
        raise asyncio.CancelledError

    async def ask() -> httpx.Response:
        options = {"policy": "silent", "base_url": refused_url(), "docs": [docs]}
        app = make_app(wire(home, model="test-model", pause=cancelled, **options))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1"
            ) as client,
        ):
            asked = {"question": "What is a topic?", "session_id": "s1", "stream": stream}
            return await client.post("/query", json=asked)

    reply = asyncio.run(ask())
    told = json.loads(reply.text.partition("data: ")[2] if stream else reply.text)
    assert (reply.status_code, told["should_respond"], told["answer"]) == (200, False, "")
    assert [entry["session_id"] for entry in open_entries(home)] == ["s1"]


def test_an_endpoint_goes_down_between_two_messages(
    home: Path, docs: Path, rules: GuardrailStore
) -> None:
    """The document's "Retry avec API down", with a server that really goes away."""
    waits = Waits()
    with ModelServer(script(planner=[COMPLETE])) as server:

        async def run() -> list[Turn]:
            made = flow_at(home, waits, policy="silent", base_url=server.url, docs=[docs])
            async with made as flow:
                up = await flow.process("s1", "What is a topic?")
                await asyncio.to_thread(server.close)
                return [up, await flow.process("s1", "What is a service?")]

        up, down = asyncio.run(run())
    assert (up.should_respond, down.should_respond) == (True, False)
    assert waits.seconds == [2.0, 4.0]
    assert remembered(home) == ["What is a topic?"]


def test_a_wrong_key_is_not_tried_again(
    home: Path, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waits = Waits()
    with ModelServer(script(reflection=status(401))) as server:
        flow = flow_at(home, waits, policy="silent", base_url=server.url, docs=[docs])
        [turn] = say(flow, "What is a topic?")
        assert server.phases.count("reflection") == 1
    assert (turn.should_respond, turn.retry_count, waits.seconds) == (False, 0, [])
    assert [line.split("]")[0] for line in lines(caplog)] == ["[SILENT FAILURE"]


def test_under_fail_fast_nothing_is_tried_again(home: Path, docs: Path) -> None:
    waits = Waits()
    with ModelServer(script(reflection=status(503))) as server:
        with pytest.raises(PhaseError):
            say(flow_at(home, waits, base_url=server.url, docs=[docs]), "What is a topic?")
        assert server.phases.count("reflection") == 1
    assert waits.seconds == []
    assert not (home / "shared_state" / "guardrails.sqlite3").exists()
