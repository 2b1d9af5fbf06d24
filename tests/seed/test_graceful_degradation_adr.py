"""graceful-degradation-adr.md, line by line, under both policies from one table.

What a client sees over HTTP (statuses, headers, texts) is in tests/api; here is what makes it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.answers import (
    COMPLETE,
    PROCEED,
    QUESTION,
    SEARCH,
    Turns,
    journal_lines,
    open_entries,
    script,
)
from tests.servers.model_server import (
    ModelServer,
    empty_choices,
    hang,
    raw,
    refused_url,
    status,
    trickle,
)
from unified_flow.config.tables import GracefulSettings
from unified_flow.errors import InputError
from unified_flow.errors.classification import TIMEOUTS
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.replay.replay import replay
from unified_flow.turns.results import ToolRequest
from unified_flow.turns.turn import Turn

BOUNDS = {"search_timeout_s": 0.4, "generation_timeout_s": 0.4, "pipeline_timeout_s": 4.0}
GENERATING = ("synthesis", "validation")

Break = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def nothing(home: Path) -> Iterator[None]:
    yield


@contextmanager
def index_gone(home: Path) -> Iterator[None]:
    for file in (home / "shared_state" / "index").iterdir():
        file.unlink()
    yield


@contextmanager
def index_destroyed(home: Path) -> Iterator[None]:
    index = home / "shared_state" / "index" / "documents.sqlite3"
    for suffix in ("-wal", "-shm"):
        index.with_name(index.name + suffix).unlink(missing_ok=True)
    index.unlink()
    index.write_bytes(b"not a database, " * 400)
    yield


@contextmanager
def index_locked(home: Path) -> Iterator[None]:
    path = home / "shared_state" / "index" / "documents.sqlite3"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    yield
    holder.close()


@dataclass(frozen=True)
class Row:
    """A row of the decision table: how it is brought about, and what its failure says."""

    service: str
    failure: str
    scope: str
    code: str
    fail_fast_code: str
    says: Mapping[str, Any] = field(default_factory=dict)
    breaks: Break = nothing
    refused: bool = False
    bounds: Mapping[str, float] = field(default_factory=dict)
    retry_after_s: float | None = None
    timed_out: bool = False
    chunks: bool = False
    says_why: str = ""

    @property
    def id(self) -> str:
        return f"{self.service} {self.failure}"


def model(failure: str, **more: Any) -> Row:
    own = {"code": "LLM_ERROR", "fail_fast_code": "LLM_ERROR", "chunks": True}
    return Row("model", failure, "model", **(own | more))


def search(failure: str, breaks: Break, **more: Any) -> Row:
    own = {"code": "RETRIEVAL_ERROR", "fail_fast_code": "RETRIEVAL_ERROR", "breaks": breaks}
    return Row("search", failure, "retrieval", **(own | more))


LIMITED = {"code": "RATE_LIMITED", "fail_fast_code": "RATE_LIMITED"}
TABLE = (
    search("offline", index_gone),
    search("broken", index_destroyed),
    search(
        "timeout",
        index_locked,
        timed_out=True,
        # Its time began with the question, and a busy machine has used some of it by then.
        says_why=r"doc\.search did not finish in 0\.[0-4]\d* s",
    ),
    model("rate limited", says={"reflection": status(429)}, retry_after_s=1.0, **LIMITED),
    model(
        "rate limited, and says until when",
        says={"query_analyzer": status(429, retry_after="7")},
        retry_after_s=7.0,
        **LIMITED,
    ),
    model("offline", refused=True),
    model(
        "timeout",
        says={"query_analyzer": hang()},
        timed_out=True,
        says_why=r"gave no complete reply in 0\.4 s",
    ),
    model(
        "timeout, a byte at a time",
        says={"synthesis": trickle()},
        timed_out=True,
        says_why=r"gave no complete reply in 0\.4 s",
    ),
    model("generation fails", says={"synthesis": status(500)}),
    model("generation fails with garbage", says={"synthesis": raw(b"<html>")}),
    model("generation fails with nothing", says={"validation": empty_choices()}),
    Row(
        "pipeline",
        "timeout exceeded",
        "pipeline",
        "INTERNAL_ERROR",
        "LLM_ERROR",
        says={"planner": hang()},
        bounds={"generation_timeout_s": 60.0, "pipeline_timeout_s": 0.6},
        timed_out=True,
        chunks=True,
        says_why=r"the turn did not come to its end in 0\.6 s",
    ),
)


def flow_for(
    row: Row, policy: str, home: Path, docs: Path, server: ModelServer, **more: Any
) -> UnifiedFlow:
    server.script = script(**row.says)
    return UnifiedFlow.from_config(
        home,
        docs=[docs],
        model="test-model",
        base_url=refused_url() if row.refused else server.url,
        timeout_s=0.4 if policy == "fail_fast" else 60.0,
        policy=policy,
        graceful={**BOUNDS, **row.bounds, **more},
        size="large",
    )


async def asked(
    row: Row, policy: str, home: Path, docs: Path, server: ModelServer, **more: Any
) -> PhaseError | Turn:
    """What `process` gives or raises once the index is fresh."""
    async with flow_for(row, policy, home, docs, server) as flow:
        assert flow.services.documents is not None
        flow.services.documents.ensure_fresh()
        with row.breaks(home):
            try:
                return await flow.process("s", QUESTION, **more)
            except PhaseError as exc:
                return exc


def failed(row: Row, policy: str, home: Path, docs: Path, server: ModelServer) -> PhaseError:
    error = asyncio.run(asked(row, policy, home, docs, server))
    assert isinstance(error, PhaseError)
    return error


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)
def test_the_table_under_graceful(
    row: Row, home: Path, docs: Path, model_server: ModelServer
) -> None:
    """What hangs here hangs for ever: that there is an answer shows that its time was bounded."""
    error = failed(row, "graceful", home, docs, model_server)

    assert (error.scope, error.code, error.answer) == (row.scope, row.code, "degrade")
    assert isinstance(error.__cause__, TIMEOUTS) == row.timed_out
    assert re.search(row.says_why, str(error)), "behaviour 5: a time-out says which step"
    assert error.retry_after_s == row.retry_after_s
    texts = [passage.text for passage in error.retrieved]
    assert any("A topic is a named bus" in text for text in texts) == row.chunks

    # Still nobody's secret: the intervention is created, and the journal is whole.
    (entry,) = open_entries(home)
    assert entry["id"] == error.intervention_id
    last = journal_lines(home)[-1]
    assert (last["event"], last["action"]) == ("phase_failed", "degrade")
    assert last["intervention_id"] == entry["id"]

    # A replay has no time-outs, and ends where the turn did.
    replayed = replay(Turns(home).events(1))
    assert replayed.same, replayed.visits


# What fail_fast does with an index that is locked is the test after this one.
@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.breaks is not index_locked], ids=lambda row: row.id
)
def test_the_same_table_under_fail_fast(
    row: Row, home: Path, docs: Path, model_server: ModelServer
) -> None:
    error = failed(row, "fail_fast", home, docs, model_server)

    assert (error.code, error.answer) == (row.fail_fast_code, "halt")
    # When a server wants to be asked again is its word, whatever the policy makes of the failure.
    assert (error.retrieved, error.retry_after_s) == ([], row.retry_after_s)
    (entry,) = open_entries(home)
    assert entry["id"] == error.intervention_id
    assert journal_lines(home)[-1]["action"] == "halt"


def test_under_fail_fast_a_slow_search_is_waited_for(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    """For longer than `graceful` would wait: until the index is let go."""

    async def run() -> Turn | PhaseError:
        row = search("slow", nothing, bounds={"search_timeout_s": 0.001})
        async with flow_for(row, "fail_fast", home, docs, model_server) as flow:
            assert flow.services.documents is not None
            flow.services.documents.ensure_fresh()
            with index_locked(home):
                turn = asyncio.create_task(flow.process("s", QUESTION))
                while "doc.search" not in {thread.name for thread in threading.enumerate()}:
                    await asyncio.sleep(0.005)
                assert not turn.done()
            return await turn

    turn = asyncio.run(run())
    assert isinstance(turn, Turn)
    assert turn.status == "answered"


# Specific behaviours, 1 to 6; the table has 2 with chunks, and 5


@pytest.mark.parametrize("breaks", [index_gone, index_locked])
def test_1_search_offline_at_once_and_no_generation(
    breaks: Break, home: Path, docs: Path, model_server: ModelServer
) -> None:
    """With the model that hangs, nobody waits for it; with one that answers, none generates."""
    slow = search("offline", breaks, says={"query_analyzer": hang()})
    assert failed(slow, "graceful", home, docs, model_server).scope == "retrieval"
    assert not set(model_server.phases) & set(GENERATING)
    assert set(model_server.phases) <= {"query_analyzer"}


def test_2_model_offline_where_nothing_can_be_retrieved(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    (docs / "robots.md").unlink()
    error = failed(model("offline", refused=True), "graceful", home, docs, model_server)
    assert (error.answer, error.retrieved) == ("degrade", [])


@pytest.mark.parametrize("policy", ["fail_fast", "graceful"])
def test_3_no_relevant_results_is_a_success_without_confidence(
    policy: str, home: Path, docs: Path
) -> None:
    async def run() -> Turn:
        async with UnifiedFlow.from_config(home, docs=[docs], policy=policy) as flow:
            return await flow.process("s", "Which wines go with a zeppelin?")

    turn = asyncio.run(run())
    assert (turn.status, turn.abstained, turn.citations) == ("answered", True, [])
    assert open_entries(home) == []


@pytest.mark.parametrize("policy", ["fail_fast", "graceful"])
@pytest.mark.parametrize("question", ["", "   ", "x" * 2001])
def test_4_a_bad_question_is_the_clients_and_nobody_elses(
    question: str, policy: str, home: Path, docs: Path
) -> None:
    async def run() -> None:
        async with UnifiedFlow.from_config(home, docs=[docs], policy=policy) as flow:
            await flow.process("s", question)

    with pytest.raises(InputError):
        asyncio.run(run())
    assert open_entries(home) == []
    assert not (home / "shared_state" / "turns").exists()


CASCADES = (
    # (what fails, and when): the earlier is the one that is told; of two at once either may be
    (search("first", index_gone, says={"query_analyzer": hang()}), {"retrieval"}),
    (search("both at once", index_gone, refused=True), {"retrieval", "model"}),
    (search("last", index_locked, says={"query_analyzer": status(500)}), {"model"}),
    (search("last", index_locked, says={"query_analyzer": status(429)}), {"model"}),
)


@pytest.mark.parametrize(("row", "told"), CASCADES)
def test_6_of_several_failures_the_earliest_is_told(
    row: Row, told: set[str], home: Path, docs: Path, model_server: ModelServer
) -> None:
    error = failed(row, "graceful", home, docs, model_server)
    assert error.scope in told
    assert error.retrieved == []
    assert len(open_entries(home)) == 1


def test_the_chunks_of_a_degraded_answer_come_best_first(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    """Of both searches together, though the first one found the worse."""
    searches = [
        ToolRequest(tool="doc.search", args={"query": query}, goal_id="g1")
        for query in ("bread needs salt", "topic")
    ]
    plan = SEARCH.model_copy(update={"tool_requests": searches})
    row = model("fails", says={"planner": [plan, COMPLETE], "synthesis": status(500)})
    found = failed(row, "graceful", home, docs, model_server).retrieved
    assert [passage.path for passage in found] == ["docs/robots.md", "docs/cooking.txt"]
    assert found[0].score > found[1].score


# Alternatives considered: off by default


def test_nothing_is_tried_twice_by_default(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    failed(model("503", says={"reflection": status(503)}), "graceful", home, docs, model_server)
    assert model_server.phases == ["query_analyzer", "reflection"]
    own = GracefulSettings()
    assert (own.retries, own.failover, own.breaker) == (0, None, False)


# Implementation: phase 3, the time-outs; phase 4, logging


def test_the_documents_time_outs_are_the_defaults() -> None:
    own = GracefulSettings()
    times = (own.search_timeout_s, own.generation_timeout_s, own.pipeline_timeout_s)
    assert times == (1.5, 3.0, 5.0)


def test_a_failure_is_logged_with_its_service_type_request_and_status(
    home: Path, docs: Path, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    row = model("fails", says={"reflection": status(503)})
    with caplog.at_level(logging.ERROR, "unified_flow"):
        error = failed(row, "graceful", home, docs, model_server)
    (record,) = (r for r in caplog.records if getattr(r, "service", None))
    said = vars(record)
    assert (said["service"], said["error_type"]) == ("llm", "HTTPStatusError")
    assert (said["request_id"], said["status_code"]) == (error.request_id, 503)


# What became of the turn


def test_the_search_is_not_made_again_for_the_same_question(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    """The index goes once the question was searched for: the plan's search of it needs none."""
    plan = SEARCH.model_copy(
        update={
            "tool_requests": [
                SEARCH.tool_requests[0].model_copy(update={"args": {"query": QUESTION}})
            ]
        }
    )
    gone = {}

    def go(connection: Any) -> None:
        with index_gone(home):
            gone["yes"] = True
        connection.json(200, _reply(PROCEED))

    row = model("well", says={"reflection": go, "planner": [plan, *script()["planner"][1:]]})
    turn = asyncio.run(asked(row, "graceful", home, docs, model_server))
    assert isinstance(turn, Turn)
    assert (turn.status, gone) == ("answered", {"yes": True})
    assert turn.sections.coordinator[0].claims


def _reply(content: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content.model_dump_json()}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
