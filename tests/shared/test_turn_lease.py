"""Who writes a turn in PostgreSQL, when its session ends under it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared.conftest import wait_until
from tests.unit.test_turn_store import RUNNER, STOPPED, begun, started
from unified_flow.engine.worker_dispatch import Workers
from unified_flow.errors import DatabaseAwayError, QueueFullError
from unified_flow.shared.database import LIVING, Connection, Database
from unified_flow.shared.turn_lease import PostgresLease
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.turns.events import TurnCompleted, TurnResumed, TurnTakenOver
from unified_flow.turns.fold import fold
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.store import RunLostError

RESUMED = TurnResumed(phase="planner", runner=RUNNER, by="u", via="cli", config_digest="c")
DONE = TurnCompleted(status="answered", saved=True, duration_ms=1.0)
SESSIONS = """
    SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
    WHERE application_name = %s AND pid != pg_backend_pid()
"""

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(database: Database) -> PostgresTurnStore:
    return PostgresTurnStore(database)


@pytest.fixture
def asking(database: Database) -> PostgresTurnStore:
    return PostgresTurnStore(database, max_queued=9)


@pytest.fixture
def other(database: Database) -> Iterator[PostgresTurnStore]:
    elsewhere = Database(database.url, "the database of another process")
    yield PostgresTurnStore(elsewhere)
    elsewhere.close()


async def written(store: PostgresTurnStore) -> PostgresLease:
    lease = await store.create()
    await lease.append(started(lease.turn_id))
    await lease.flush()
    assert isinstance(lease, PostgresLease)
    return lease


def end_sessions(database: Database) -> None:
    with database.connect() as session:
        assert session.execute(SESSIONS, [database.program]).fetchone() == (True,)


async def test_whose_session_ended_goes_on_if_nobody_else_has_the_turn(
    database: Database, store: PostgresTurnStore
) -> None:
    lease = await written(store)
    await lease.append(begun("planner"))
    end_sessions(database)
    await lease.append(STOPPED)
    assert [e.event for e in await store.read(lease.turn_id)] == [
        "turn_started",
        "phase_started",
        "turn_interrupted",
    ]
    await lease.release()


async def test_a_turn_that_was_let_go_while_the_database_was_away_is_free_once_it_is_back(
    store: PostgresTurnStore, other: PostgresTurnStore
) -> None:
    lease = await written(other)
    await lease.append(STOPPED)
    url, other.database.url = other.database.url, "postgresql://u@127.0.0.1:1/gone"
    other.database.patience_s = 0.0
    other.database.close()
    with store.database.connect() as session:
        session.execute(SESSIONS, [other.database.program])
    await lease.release()
    other.database.url = url
    assert await other.ids() == [lease.turn_id]  # the next statement that succeeds
    taken = await store.open(lease.turn_id)
    await taken.release()


@pytest.mark.parametrize("writes", [False, True])
async def test_whose_turn_another_has_writes_nothing(
    writes: bool, database: Database, store: PostgresTurnStore, other: PostgresTurnStore
) -> None:
    """Also if the other one has left it again meanwhile."""
    lease = await written(store)
    end_sessions(database)
    second = await other.open(lease.turn_id)
    if writes:
        await second.append(STOPPED)
        await second.release()
    before = len(await store.read(lease.turn_id))
    with pytest.raises(RunLostError):
        await lease.append(DONE)
    await lease.release()
    assert len(await store.read(lease.turn_id)) == before
    await second.release()


async def test_a_message_whose_turn_has_just_been_answered_has_no_other(
    asking: PostgresTurnStore, store: PostgresTurnStore
) -> None:
    """Sent again when its service was killed, it looked for an answer a moment too early."""
    for _ in range(2):
        lease = await asking.create()
        message = started(lease.turn_id).model_copy(update={"request_id": "r"})
        await lease.append(message)
        assert await lease.dispatch(streamed=False) == 1
        await lease.release()
        if (run := await store.claim(1, 1)) is not None:
            await run.append(DONE)
            await run.release()
    assert await asking.ids() == [1]


async def test_a_message_is_taken_although_the_last_session_ended(
    database: Database, asking: PostgresTurnStore
) -> None:
    """As after a restart of the server, of which nobody need hear."""
    async with asking.delivery("one"):
        end_sessions(database)
    async with asking.delivery("two") as delivery:
        assert delivery.begun is None


async def test_the_status_changes_with_the_last_line(
    database: Database, store: PostgresTurnStore
) -> None:
    """In one transaction: no reader sees one without the other."""
    lease = await written(store)
    with database.connect() as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        seen = "SELECT status, lines, (SELECT count(*) FROM turn_events) FROM turns"
        assert reader.execute(seen).fetchone() == ("running", 1, 1)
        await lease.append(DONE)
        assert reader.execute(seen).fetchone() == ("running", 1, 1)
        reader.execute("COMMIT")
        assert reader.execute(seen).fetchone() == ("answered", 2, 2)
    await lease.release()


async def test_what_is_put_with_a_line_goes_with_it(
    database: Database, store: PostgresTurnStore
) -> None:
    lease = await written(store)
    tries: list[Any] = []

    def put() -> str:
        with database.transaction() as connection:
            connection.execute("INSERT INTO texts VALUES ('m', 'm', '')")
        tries.append(None)
        if len(tries) == 1:  # the session ends before the line is written
            end_sessions(database)
        return "put"

    result, event = await lease.append_with(put, lambda told: STOPPED)
    assert (result, event, len(tries)) == ("put", STOPPED, 2)
    assert database.row("SELECT count(*) FROM texts") == (1,)
    assert len(await store.read(lease.turn_id)) == 2
    await lease.release()


async def test_a_turn_whose_beginning_was_written_but_not_answered_begins(
    database: Database, store: PostgresTurnStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = database.connection, []

    @contextmanager
    def loses_one_answer() -> Iterator[Connection]:
        with real() as connection:
            yield connection
            if not lost and connection.execute("SELECT 1 FROM turns").fetchone():
                lost.append(1)
                raise DatabaseAwayError("the connection was lost")

    monkeypatch.setattr(database, "connection", loses_one_answer)
    lease = await written(store)
    assert (lost, await store.ids()) == ([1], [lease.turn_id])
    await lease.release()


async def dispatched(store: PostgresTurnStore) -> PostgresLease:
    lease = await store.create()
    await lease.append(started(lease.turn_id).model_copy(update={"request_id": "r"}))
    assert isinstance(lease, PostgresLease)
    assert await lease.dispatch(streamed=False) == lease.turn_id
    return lease


async def ended(worker: PostgresTurnStore, turn_id: int, run: int) -> None:
    lease = await worker.claim(turn_id, run)
    assert lease is not None
    await lease.append(STOPPED)
    await lease.release()


async def test_who_has_followed_an_earlier_run_neither_sees_nor_cancels_the_next(
    database: Database, asking: PostgresTurnStore, store: PostgresTurnStore
) -> None:
    """A slow service hears of a failure when the turn has been retried already."""
    first = await dispatched(asking)
    await ended(store, 1, 1)
    again = await asking.open(1)
    assert isinstance(again, PostgresLease)
    await again.append(RESUMED)
    await again.dispatch(streamed=False)
    seen = Ledger(first, turn=fold([started(1)]))
    await asyncio.wait_for(Workers(asking, "en")._follow(seen, 1, known=1), 10)
    assert seen.turn.status == "interrupted"
    assert not await asking.leave(1, first.run)
    assert database.row("SELECT live, followers FROM turns") == (True, 1)
    assert await asking.leave(1, again.run)


async def test_a_run_that_was_left_is_joined_by_nobody(
    asking: PostgresTurnStore, store: PostgresTurnStore
) -> None:
    """It is cancelled just now: the same message waits, and then its turn goes on."""
    await dispatched(asking)
    assert await asking.leave(1, 1)
    with pytest.raises(QueueFullError, match="cancelled"):
        await dispatched(asking)
    assert await asking.ids() == [1]
    message = "s\0r\0u\0" + started(1).question

    async def delivered() -> int | None:
        async with asking.delivery(message) as delivery:
            return delivery.begun

    waiting = asyncio.create_task(delivered())
    await ended(store, 1, 1)
    assert await asyncio.wait_for(waiting, 10) == 1


async def test_a_failed_turn_does_not_go_on_while_another_answers_its_message(
    asking: PostgresTurnStore, store: PostgresTurnStore
) -> None:
    """Asked again, a message whose turn has failed is a new turn."""
    await dispatched(asking)
    await ended(store, 1, 1)
    lease = await asking.create()
    message = started(1).model_copy(update={"request_id": "r", "turn_id": lease.turn_id})
    await lease.append(message)
    assert isinstance(lease, PostgresLease)
    assert await lease.dispatch(streamed=False) == 2
    for _ in range(2):
        again = await asking.open(1)
        await again.append(RESUMED)
        with pytest.raises(QueueFullError, match="another turn"):
            await again.dispatch(streamed=False)
    assert [event.event for event in await asking.read(1)] == ["turn_started", STOPPED.event]
    await ended(store, 2, 1)
    again = await asking.open(1)
    await again.append(RESUMED)
    assert await again.dispatch(streamed=False) == 1


async def test_a_turn_that_somebody_looks_at_as_its_last_follower_leaves_has_ended(
    database: Database, asking: PostgresTurnStore, other: PostgresTurnStore
) -> None:
    """Whoever holds it is no worker, so that nobody else would say how it ended."""
    await dispatched(asking)
    looks = await other.open(1)
    leaving = asyncio.create_task(Workers(asking, "en")._leave(1, 1))
    cancelled = "SELECT status = 'CANCELLED' FROM dbos.workflow_status"
    await asyncio.to_thread(wait_until, database, cancelled)
    await looks.release()
    await asyncio.wait_for(leaving, 10)
    assert database.row("SELECT status, live FROM turns") == ("interrupted", False)


async def test_a_turn_whose_worker_is_gone_ends_as_its_last_follower_leaves(
    database: Database, asking: PostgresTurnStore, other: PostgresTurnStore
) -> None:
    """Also where there is no other worker, who would see that nobody waits for it."""
    await dispatched(asking)
    run = await other.claim(1, 1)
    assert run is not None
    await run.append(TurnTakenOver(runner=RUNNER, config_digest="c", dispatched=True))
    await run.flush()
    assert not await asking.is_queued(1)
    other.database.close()
    gone = f"SELECT worker_id NOT IN {LIVING} FROM turns"
    await asyncio.to_thread(wait_until, database, gone)
    await asyncio.wait_for(Workers(asking, "en")._leave(1, 1), 10)
    assert database.row("SELECT status, live FROM turns") == ("interrupted", False)
