"""The policy `graceful` beyond its table: the options, resuming, turns that are not kept, hangs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from interventions.entry import is_open
from interventions.home import lock_file
from tests.answers import (
    PROCEED,
    QUESTION,
    every_phase_by_model,
    journal_lines,
    open_entries,
    script,
)
from tests.servers.model_server import ModelServer, answer, hang, status
from unified_flow.cli.trace import requests_of
from unified_flow.engine.ephemeral_turns import EVERY_S, EphemeralTurns
from unified_flow.errors.classification import TIMEOUTS
from unified_flow.flow import UnifiedFlow
from unified_flow.models.scripted import ScriptedModel
from unified_flow.phases.errors import LoopLimitError, PhaseError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.retrieval.documents import Documents
from unified_flow.tools.builtin.doc_search import doc_search
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

pytestmark = every_phase_by_model


def flow_at(home: Path, docs: Path, server: ModelServer, **graceful: Any) -> UnifiedFlow:
    return UnifiedFlow.from_config(
        home,
        docs=[docs],
        model="test-model",
        base_url=server.url,
        policy="graceful",
        graceful=graceful,
    )


async def ask(flow: UnifiedFlow, **more: Any) -> Turn | PhaseError:
    async with flow:
        try:
            return await flow.process("s", QUESTION, **more)
        except PhaseError as exc:
            return exc


def lines_of(home: Path, event: str) -> list[dict[str, Any]]:
    return [line for line in journal_lines(home) if line["event"] == event]


# Production mode: retries, a second model, a breaker


def test_what_passes_by_itself_is_tried_again(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(reflection=[status(503), answer("?"), PROCEED])
    turn = asyncio.run(ask(flow_at(home, docs, model_server, retries=2, backoff_s=0.01)))
    assert isinstance(turn, Turn)
    assert (turn.status, turn.failure) == ("answered", None)
    assert open_entries(home) == []
    # Each call counts; the reply that was of no use was a call that brought a reply.
    assert len(lines_of(home, "model_failed")) == 1
    assert turn.counters.model_calls == len(model_server.phases) == 8


def test_retries_count_towards_the_limit_of_calls(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(reflection=[status(503)] * 30)
    flow = flow_at(home, docs, model_server, retries=50, backoff_s=0.0, pipeline_timeout_s=60)
    error = asyncio.run(ask(flow))
    assert isinstance(error, PhaseError)
    assert len(model_server.phases) == 25
    assert not isinstance(error, LoopLimitError), "the earliest failure is the one that is told"
    assert error.scope == "model"
    (entry,) = open_entries(home)
    assert entry["error_type"] == "HTTPStatusError"


def test_another_model_answers_where_the_first_fails(home: Path, docs: Path) -> None:
    first = ScriptedModel(script(synthesis=ConnectionError("gone")), name="first")
    second = ScriptedModel(script(), name="second")
    flow = UnifiedFlow(
        wire(
            home,
            docs=[docs],
            model="first",
            extra_models={"first": first, "second": second},
            policy="graceful",
            graceful={"failover": "second"},
        )
    )
    turn = asyncio.run(ask(flow))
    assert isinstance(turn, Turn)
    assert (turn.status, second.phases) == ("answered", ["synthesis"])
    started = [line for line in lines_of(home, "phase_started") if line["phase"] == "synthesis"]
    assert [(line["attempt"], line["model"]) for line in started] == [(1, "first"), (2, "second")]
    assert turn.failed_over, "its user is told that it is not what it should be"
    (entry,) = InterventionQueue(home).entries()  # else nobody would know that the first is down
    assert (entry["phase"], entry["turn_id"]) == ("synthesis", turn.turn_id)


def test_where_both_models_fail_the_first_is_told(home: Path, docs: Path) -> None:
    models = {
        name: ScriptedModel(script(reflection=OSError(f"{name} is gone")), name=name)
        for name in ("first", "second")
    }
    settings = {"policy": "graceful", "graceful": {"failover": "second"}}
    flow = UnifiedFlow(wire(home, docs=[docs], model="first", extra_models=models, **settings))
    error = asyncio.run(ask(flow))
    assert isinstance(error, PhaseError)
    assert "first is gone" in str(error)
    (entry,) = InterventionQueue(home).entries()
    assert (entry["error_message"], entry["occurrences"]) == ("first is gone", 1)


def test_a_model_that_keeps_failing_is_left_alone(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(query_analyzer=status(500))

    async def run() -> list[PhaseError]:
        errors = []
        async with flow_at(home, docs, model_server, breaker=True, breaker_failures=2) as flow:
            for _ in range(3):
                with pytest.raises(PhaseError) as raised:
                    await flow.process("s", QUESTION)
                errors.append(raised.value)
        return errors

    last = asyncio.run(run())[-1]
    assert "last with HTTPStatusError: 500" in str(last), "the cause, also where it was not told"
    assert len(model_server.phases) == 2
    assert (last.scope, last.answer) == ("model", "degrade")
    assert last.retry_after_s == pytest.approx(30.0, abs=5.0)
    assert last.retrieved


# A turn that was degraded goes on


def test_a_degraded_turn_is_resumed_and_its_intervention_closed(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(synthesis=status(503))
    error = asyncio.run(ask(flow_at(home, docs, model_server)))
    assert isinstance(error, PhaseError)
    model_server.script = script()

    async def run() -> Any:
        async with flow_at(home, docs, model_server) as flow:
            return await resume_turn(flow, error.turn_id, ResumeRequest(note="it is up again"))

    resumed = asyncio.run(run())
    assert (resumed.turn.status, resumed.closed) == ("answered", error.intervention_id)
    assert not any(is_open(entry) for entry in open_entries(home))


# Turns that are not to be kept


def folders(home: Path) -> list[str]:
    return [folder.name for folder in (home / "shared_state" / "turns").iterdir()]


def test_a_turn_that_is_not_to_be_kept_leaves_only_its_line(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script()
    flow = flow_at(home, docs, model_server)
    turn = asyncio.run(ask(flow, persist=False))
    assert isinstance(turn, Turn)
    assert (turn.status, turn.saved, folders(home)) == ("answered", False, [])
    assert not (home / "shared_state" / "sessions.sqlite3").exists()
    logged = (home / "logs/rag_queries.jsonl").read_text()
    assert turn.request_id in logged
    assert QUESTION not in logged


def test_a_failure_that_is_not_to_be_kept_stays_until_its_intervention_is_closed(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(planner=status(500))
    error = asyncio.run(ask(flow_at(home, docs, model_server), persist=False))
    assert isinstance(error, PhaseError)
    queue = InterventionQueue(home)
    kept = EphemeralTurns(wire(home))
    assert asyncio.run(kept.remove_closed()) == 0
    assert folders(home) == ["turn_000001"]
    queue.resolve(str(error.intervention_id), "the server is up again")
    assert asyncio.run(kept.remove_closed()) == 1
    assert folders(home) == []


def test_a_service_looks_by_itself_what_is_still_needed(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(planner=[status(500), *script()["planner"]])
    clock = [0.0]

    async def run() -> None:
        async with flow_at(home, docs, model_server) as flow:
            services = flow.services
            flow._ephemeral = EphemeralTurns(services, lambda: clock[0])
            with pytest.raises(PhaseError) as raised:
                await flow.process("s", QUESTION, persist=False)
            services.queue.dismiss(str(raised.value.intervention_id), "known")
            clock[0] += EVERY_S
            await flow.process("s", QUESTION, persist=False)

    asyncio.run(run())
    assert folders(home) == []


def test_a_turn_that_nobody_waits_for_any_more_leaves_nothing(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(planner=hang())

    async def run() -> None:
        async with flow_at(home, docs, model_server) as flow:
            turn = asyncio.create_task(flow.process("s", QUESTION, persist=False))
            while "planner" not in model_server.phases:
                await asyncio.sleep(0.005)
            turn.cancel()
            await asyncio.wait({turn})
            assert turn.cancelled()

    asyncio.run(run())
    assert folders(home) == []
    assert open_entries(home) == []


# What hangs


class Hanging:
    """A store that does not answer until it is let go."""

    may_wait = False

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.inside = 0

    def found(
        self, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> None:
        self.inside += 1
        self.let_go.wait()


class Counted:
    may_wait = False

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.queries: list[str] = []

    def found(self, query: str, limit: int, conversation: Mapping[str, float] | None = None) -> Any:
        self.queries.append(query)
        return self.documents.found(query, limit, conversation)


def test_each_part_of_a_question_is_searched_for_once(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    """The search beside the first phase and the plan of rules ask for the same."""
    documents = wire(tmp_path / "indexed", docs=[docs]).documents
    assert documents is not None
    documents.ensure_fresh()
    store = Counted(documents)
    flow = UnifiedFlow(wire(home, tools=[doc_search(store)], policy="graceful"))

    async def run() -> Turn:
        async with flow:
            return await flow.process("s", "Please tell me what a topic is? What is a service?")

    turn = asyncio.run(run())
    assert [each.result["query"] for each in turn.sections.coordinator] == store.queries
    assert len(store.queries) == 2


def test_rules_are_not_bounded_as_a_model_is(home: Path, docs: Path) -> None:
    hasty = {"generation_timeout_s": 0.000_001}
    flow = UnifiedFlow.from_config(home, docs=[docs], policy="graceful", graceful=hasty)
    turn = asyncio.run(ask(flow))
    assert isinstance(turn, Turn)
    assert turn.citations


def test_a_store_that_hangs_holds_a_few_threads_and_no_turn(home: Path) -> None:
    store = Hanging()
    settings = {"policy": "graceful", "graceful": {"search_timeout_s": 0.2}}
    flow = UnifiedFlow(wire(home, tools=[doc_search(store)], **settings))

    async def one(number: int) -> PhaseError:
        with pytest.raises(PhaseError) as raised:
            await flow.process(f"s{number}", QUESTION)
        return raised.value

    async def run() -> list[PhaseError]:
        async with flow:
            return await asyncio.gather(*(one(number) for number in range(12)))

    before = set(threading.enumerate())
    errors = asyncio.run(run())
    new = set(threading.enumerate()) - before
    hanging = [thread for thread in new if thread.name == "doc.search"]
    store.let_go.set()
    for thread in hanging:
        thread.join(5)
    assert {error.scope for error in errors} == {"retrieval"}
    assert all(isinstance(error.__cause__, TIMEOUTS) for error in errors)
    assert store.inside == len(hanging) == 4


HANGS = """
import asyncio, sys, threading
from unified_flow.flow import UnifiedFlow
from unified_flow.tools.builtin.doc_search import doc_search
from unified_flow.wiring import wire

class Hanging:
    may_wait = False

    def found(self, query, limit, conversation):
        threading.Event().wait()

graceful = {"search_timeout_s": 0.2}
tools = [doc_search(Hanging())]
flow = UnifiedFlow(wire(sys.argv[1], tools=tools, policy="graceful", graceful=graceful))
print(asyncio.run(flow.process_request("s", "What is a topic?"))["error_type"])
"""


def test_a_thread_that_hangs_does_not_keep_the_process(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS, str(home)],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert done.stdout.strip() == "QueryAnalyzerError"


def test_a_queue_that_somebody_holds_does_not_hold_the_answer(
    home: Path, docs: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unified_flow.engine.boundary.REPORT_TIMEOUT_S", 0.1)
    model_server.script = script(query_analyzer=status(503))
    queue = InterventionQueue(home)
    lock_file(home).parent.mkdir(parents=True, exist_ok=True)

    async def run() -> PhaseError:
        async with flow_at(home, docs, model_server) as flow:
            with queue.store.transaction(5.0), pytest.raises(PhaseError) as raised:
                await flow.process("s", QUESTION)
            return raised.value

    error = asyncio.run(run())
    assert (error.intervention_id, error.admission) == (None, "pending")
    assert error.answer == "degrade"
    (entry,) = open_entries(home)
    assert entry["turn_id"] == error.turn_id


def test_a_turn_whose_failure_is_still_being_told_is_not_removed(
    home: Path, docs: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No intervention names it, and yet none is closed."""
    monkeypatch.setattr("unified_flow.engine.boundary.REPORT_TIMEOUT_S", 0.1)
    model_server.script = script(query_analyzer=status(503))
    lock_file(home).parent.mkdir(parents=True, exist_ok=True)

    async def run() -> None:
        async with flow_at(home, docs, model_server) as flow:
            with InterventionQueue(home).store.transaction(5.0):
                with pytest.raises(PhaseError) as raised:
                    await flow.process("s", QUESTION, persist=False)
                assert raised.value.admission == "pending"
                assert await flow._ephemeral.remove_closed() == 0
                assert folders(home) == ["turn_000001"]
            while not open_entries(home):
                await asyncio.sleep(0.005)
            assert await flow._ephemeral.remove_closed() == 0

    asyncio.run(run())
    (entry,) = open_entries(home)
    assert entry["turn_id"] == 1
    (request,) = requests_of(home, entry["request_id"])
    assert request["intervention"]["id"] == entry["id"], "its line was written before it had one"
    assert folders(home) == ["turn_000001"]


def test_whoever_leaves_while_a_failure_is_told_leaves_the_turn_to_it(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script(query_analyzer=status(503))
    lock_file(home).parent.mkdir(parents=True, exist_ok=True)

    async def run() -> None:
        async with UnifiedFlow.from_config(
            home, docs=[docs], model="test-model", base_url=model_server.url
        ) as flow:
            with InterventionQueue(home).store.transaction(5.0):
                turn = asyncio.create_task(flow.process("s", QUESTION, persist=False))
                while not any("model_failed" in line for line in _events(home)):
                    await asyncio.sleep(0.005)
                for _ in range(2):
                    turn.cancel()
                    for _ in range(100):  # rounds of the loop in which it could end too early
                        await asyncio.sleep(0)
                assert not turn.done()
            await asyncio.wait({turn})
            assert turn.cancelled()

    asyncio.run(run())
    (entry,) = open_entries(home)
    assert folders(home) == ["turn_000001"]
    last = journal_lines(home)[-1]
    assert (last["event"], last["intervention_id"]) == ("phase_failed", entry["id"])
    assert last["code"] == "LLM_ERROR"


def _events(home: Path) -> list[str]:
    path = home / "shared_state/turns/turn_000001/journal.jsonl"
    return path.read_text().splitlines() if path.exists() else []
