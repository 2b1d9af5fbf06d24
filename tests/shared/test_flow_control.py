"""How many turns run, and wait; who goes first; and a message that comes twice."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.answers import ANALYSIS, DRAFT, QUESTION
from tests.servers.fixtures import VARIABLE
from tests.servers.model_server import ModelServer, status, stream
from tests.shared.conftest import (
    LIMIT_S,
    Gate,
    StartWorker,
    close_stores,
    script,
    wait_until,
    within,
)
from unified_flow.engine.outcome import outcome_of
from unified_flow.errors import DatabaseAwayError, QueueFullError
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import SynthesisError
from unified_flow.policies import FailFast
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.shared.database import Database
from unified_flow.shared.notifications import Listener
from unified_flow.shared.text_relay import TextReceiver, TextSender
from unified_flow.shared.turn_lease import CHANNEL
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.turns.events import Observed, TextArrived
from unified_flow.turns.turn import Turn


@pytest.fixture
def threads() -> Any:
    with ThreadPoolExecutor(20) as several:
        yield several


def ask(
    threads: ThreadPoolExecutor, client: UnifiedFlow, user: str = "u", **options: Any
) -> Future[Turn]:
    return threads.submit(
        lambda: asyncio.run(within(client.process(f"s{user}", QUESTION, user_id=user, **options)))
    )


def more_settings(home: Path, text: str) -> None:
    file = home / "unified_flow.toml"
    file.write_text(file.read_text() + text + "\n")


@pytest.mark.parametrize(
    ("setting", "users", "at_once"),
    [
        ("turns_per_worker = 2", "aaaaa", 2),
        ("turns_at_once = 1", "abcde", 1),
        ("turns_per_user = 1", "aaabb", 2),
    ],
    ids=["a worker", "in all", "a user"],
)
def test_so_many_turns_run_at_once(
    setting: str,
    users: str,
    at_once: int,
    served_home: Path,
    start_worker: StartWorker,
    model_server: ModelServer,
    threads: ThreadPoolExecutor,
    database: Database,
) -> None:
    more_settings(served_home, setting)
    gate = Gate(ANALYSIS)
    model_server.script = script(query_analyzer=gate)
    client = UnifiedFlow.from_config(served_home)
    asked = [ask(threads, client, user, request_id=f"r{n}") for n, user in enumerate(users)]
    start_worker()
    for _ in range(at_once):
        gate.wait_for_one()
    assert not gate.reached.acquire(timeout=1.0), "another one runs"
    gate.open.set()
    assert {each.result(LIMIT_S).status for each in asked} == {"answered"}


def test_a_resumption_goes_before_new_work(
    served_home: Path,
    start_worker: StartWorker,
    model_server: ModelServer,
    threads: ThreadPoolExecutor,
    client: UnifiedFlow,
    database: Database,
) -> None:
    more_settings(served_home, "turns_per_worker = 1")
    model_server.script = script(synthesis=status(500))
    start_worker()
    with pytest.raises(SynthesisError):
        ask(threads, client).result(LIMIT_S)
    gate = Gate(DRAFT)
    model_server.script = script(synthesis=gate)
    blocking = ask(threads, client, "first")
    gate.wait_for_one()
    new = ask(threads, client, "new")
    assert wait_until(database, "SELECT count(*) = 2 FROM turns WHERE live")
    resumed = threads.submit(lambda: asyncio.run(resume_turn(client, 1, ResumeRequest())))
    assert wait_until(database, "SELECT count(*) = 3 FROM turns WHERE live")
    gate.open.set()
    for each in (blocking, new, resumed):
        assert each.result(LIMIT_S).status == "answered"
    ended = "SELECT array_agg(turn_id ORDER BY changed_at) = ARRAY[2, 1, 3]::bigint[] FROM turns"
    assert wait_until(database, ended)


def test_too_many_waiting_turns_refuse_another(
    served_home: Path, threads: ThreadPoolExecutor, database: Database
) -> None:
    """With no intervention: nothing is broken."""
    more_settings(served_home, "max_queued = 1")
    client = UnifiedFlow.from_config(served_home)

    async def ask_two() -> None:
        waiting = asyncio.create_task(client.process("s", QUESTION))
        await asyncio.to_thread(wait_until, database, "SELECT bool_or(live) FROM turns")
        with pytest.raises(QueueFullError, match="1 turns wait") as refused:
            await client.process("other", QUESTION)
        outcome = outcome_of(refused.value, FailFast())
        assert (outcome.answer, outcome.unreported) == ("unavailable", False)
        waiting.cancel()
        await asyncio.wait({waiting})

    asyncio.run(ask_two())
    with database.connection() as connection:
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (1,)


def test_a_database_that_is_away_is_no_failure_of_a_turn(
    served_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = outcome_of(DatabaseAwayError("away"), FailFast())
    assert (outcome.answer, outcome.unreported) == ("unavailable", False)


@pytest.fixture
def services(
    served_home: Path, tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[UnifiedFlow]]:
    """Two, each with sessions of its own at the database."""
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("OTHER_URL", database.url)
    settings = (served_home / "unified_flow.toml").read_text()
    (other / "unified_flow.toml").write_text(settings.replace(VARIABLE, "OTHER_URL"))
    yield [UnifiedFlow.from_config(place) for place in (served_home, other)]
    close_stores(other)


def test_the_same_message_to_two_services_is_one_turn(
    services: list[UnifiedFlow],
    start_worker: StartWorker,
    model_server: ModelServer,
    gate: Gate,
    threads: ThreadPoolExecutor,
    database: Database,
) -> None:
    """Also if the first service dies meanwhile: who asks the second follows the same turn."""
    start_worker()
    first = ask(threads, services[0], request_id="r1")
    gate.wait_for_one()
    turns = services[0].services.turns
    assert isinstance(turns, PostgresTurnStore)
    sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %(name)s"
    assert database.rows(sql, name=turns.database.program)  # as the death of the first service does
    second = ask(threads, services[1], request_id="r1")
    assert wait_until(database, "SELECT followers = 2 FROM turns WHERE live")
    gate.open.set()
    answered = [each.result(LIMIT_S) for each in (first, second)]
    assert {turn.turn_id for turn in answered} == {1}
    assert model_server.phases.count("synthesis") == 1


def test_who_leaves_does_not_end_the_turn_that_another_follows(
    services: list[UnifiedFlow],
    start_worker: StartWorker,
    model_server: ModelServer,
    database: Database,
) -> None:
    gate = Gate(DRAFT)
    model_server.script = script(synthesis=[gate, gate])
    start_worker()

    async def one_leaves() -> list[Turn]:
        asked = [
            asyncio.create_task(each.process("s", QUESTION, request_id="r1")) for each in services
        ]
        await asyncio.to_thread(wait_until, database, "SELECT bool_or(followers = 2) FROM turns")
        asked.pop().cancel()
        await asyncio.to_thread(wait_until, database, "SELECT bool_or(followers = 1) FROM turns")
        gate.open.set()
        return [await each for each in asked]

    (turn,) = asyncio.run(within(one_leaves()))
    assert turn.status == "answered"
    assert model_server.phases.count("synthesis") == 1


def test_text_is_seen_where_the_question_was_asked(
    client: UnifiedFlow,
    start_worker: StartWorker,
    model_server: ModelServer,
    threads: ThreadPoolExecutor,
    database: Database,
) -> None:
    shown = threading.Event()
    model_server.script = script(synthesis=[DRAFT, stream(DRAFT.model_dump_json(), held=shown)])
    start_worker()
    ask(threads, client).result(LIMIT_S)
    seen: list[Observed] = []

    def observe(event: Observed) -> None:
        if not seen:
            for words in ("of another program", "2 text {", "2 text [1, -1, null]", "2 text []"):
                database.row("SELECT pg_notify(%(at)s, %(words)s)", at=CHANNEL, words=words)
        seen.append(event)
        if isinstance(event, TextArrived):
            shown.set()

    turn = ask(threads, client, observer=observe).result(LIMIT_S)
    assert turn.response == DRAFT.response
    arrived = [event.text for event in seen if isinstance(event, TextArrived)]
    assert arrived
    assert DRAFT.response.startswith(arrived[0])


@pytest.mark.parametrize("character", ["\N{SLIGHTLY SMILING FACE}", "\u754c", "\n"])
def test_much_text_of_any_script_is_seen(character: str, database: Database) -> None:
    """PostgreSQL bounds what is told at once, in bytes."""
    text = character * 2500
    told, receiver = queue.SimpleQueue[str | None](), TextReceiver()
    listener = Listener(database, CHANNEL, told.put)
    assert told.get(timeout=LIMIT_S) is None  # it listens

    async def send() -> str:
        TextSender(database, 1)(TextArrived(phase="synthesis", text=text))
        seen = ""
        while len(seen) < len(text):
            news = await asyncio.to_thread(told.get, timeout=LIMIT_S)
            arrived = receiver.received(str(news).partition(" ")[2])
            seen = arrived.text if arrived else seen
        return seen

    assert asyncio.run(send()) == text
    listener.close()


def test_text_that_the_database_does_not_take_is_no_trouble(database: Database) -> None:
    troubles: list[object] = []

    async def send() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: troubles.append(said))
        TextSender(database, 1)(TextArrived(phase="synthesis", text="x"))
        (sending,) = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait([sending])
        del sending
        gc.collect()

    database.row = Mock(side_effect=DatabaseAwayError("away"))  # type: ignore[method-assign]
    asyncio.run(send())
    assert not troubles
