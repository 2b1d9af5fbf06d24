"""What every store of turns does: one contract over the files and the memory."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import pytest

from tests.answers import COMPLETE, QUESTION, Turns, scripted_flow
from unified_flow.engine.dead_turns import may_be_taken_over, take_over
from unified_flow.engine.outcome import phase_error
from unified_flow.engine.services import Dispatcher
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.threads import wait_for
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import resume_turn
from unified_flow.shared.database import Database
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import (
    AnyEvent,
    ModelCalled,
    PhaseCompleted,
    PhaseStarted,
    Runner,
    TurnInterrupted,
    TurnResumed,
    TurnStarted,
    TurnTakenOver,
    Write,
)
from unified_flow.turns.file_store import FileTurnStore
from unified_flow.turns.fold import apply, fold
from unified_flow.turns.in_memory_store import InMemoryTurnStore
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.store import TurnLease, TurnStore
from unified_flow.turns.turn import Counters, Turn

LATER = datetime(2100, 1, 1, tzinfo=UTC)
EARLIER = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TurnStore]:
    if request.param == "file":
        yield FileTurnStore(tmp_path / "turns")
    elif request.param == "memory":
        yield InMemoryTurnStore()
    else:
        database = Database(request.getfixturevalue("database_url"), "the database of the test")
        yield PostgresTurnStore(database)
        database.close()


def loop(test: Callable[[TurnStore], Coroutine[Any, Any, None]]) -> Callable[[TurnStore], None]:
    def run(store: TurnStore) -> None:
        asyncio.run(test(store))

    run.__name__ = test.__name__
    return run


def started(turn_id: int) -> TurnStarted:
    return TurnStarted(
        turn_id=turn_id,
        session_id="s",
        request_id=f"r{turn_id}",
        user_id="u",
        channel=None,
        question="What is a topic? é",
        policy="fail_fast",
        config_digest="",
    )


def begun(phase: str) -> PhaseStarted:
    return PhaseStarted(
        phase=phase, visit=1, attempt=1, input_digest="", model=None, recipe_digest=None
    )


RUNNER = Runner(user="u", host="h", pid=1)
STOPPED = TurnInterrupted(phase=None, reason="Ctrl-C")


async def ended(store: TurnStore) -> int:
    async with await Ledger.create(store, started) as ledger:
        await ledger.record(STOPPED)
    return ledger.turn.turn_id


@loop
async def test_what_was_appended_is_read_back(store: TurnStore) -> None:
    lease = await store.create()
    events: list[AnyEvent] = [started(lease.turn_id), begun("planner"), STOPPED]
    for event in events:
        await lease.append(event)
    assert await store.read(lease.turn_id) == events, "the last one must be durable"
    await lease.append(begun("planner"))
    await lease.flush()
    assert await store.read(lease.turn_id) == [
        *events,
        begun("planner").model_copy(update={"at": (await store.read(lease.turn_id))[-1].at}),
    ]
    await lease.release()
    assert await store.first(lease.turn_id) == events[0]


@loop
async def test_numbers_grow_and_are_listed(store: TurnStore) -> None:
    first, second = [await ended(store) for _ in range(2)]
    assert 0 < first < second
    assert await store.ids() == [first, second]
    assert list(await store.marks()) == [first, second]
    assert await store.mark(second + 1) is None


@loop
async def test_a_turn_has_one_writer(store: TurnStore) -> None:
    lease = await store.create()
    turn_id = lease.turn_id
    assert await store.is_held(turn_id)
    with pytest.raises(BlockingIOError):
        await store.open(turn_id)
    await lease.append(started(turn_id))
    await lease.release()
    assert not await store.is_held(turn_id)
    other = await store.open(turn_id)
    await lease.release()
    assert await store.is_held(turn_id), "a second release is not the other's"
    await other.release()


@loop
async def test_what_is_not_there(store: TurnStore) -> None:
    for use in (store.open, store.read, store.first):
        with pytest.raises(FileNotFoundError):
            await use(7)
    assert not await store.is_held(7)
    assert await store.mark(7) is None
    assert await TurnArchive(store).load(7) is None


@loop
async def test_a_mark_changes_with_every_line(store: TurnStore) -> None:
    turn_id = await ended(store)
    before = await store.mark(turn_id)
    assert before is not None
    assert before.is_before(LATER)
    assert not before.is_before(EARLIER)
    assert await store.mark(turn_id) == before == (await store.marks())[turn_id]
    lease = await store.open(turn_id)
    await lease.append(STOPPED)
    await lease.release()
    assert await store.mark(turn_id) != before


@loop
async def test_a_turn_that_was_never_begun(store: TurnStore) -> None:
    """A database has nothing of it."""
    lease = await store.create()
    kept = [] if isinstance(store, PostgresTurnStore) else [lease.turn_id]
    assert [(n, mark.size or 0) for n, mark in (await store.marks()).items()] == [
        (n, 0) for n in kept
    ]
    for turn_id in kept:
        assert await store.read(turn_id) == []
        assert await store.first(turn_id) is None
    assert await TurnArchive(store).load(lease.turn_id) is None
    await lease.release()
    newest = await ended(store)
    await store.sweep(EARLIER)
    assert await store.ids() == [*kept, newest]
    await store.sweep(LATER)
    assert await store.ids() == [newest]


@loop
async def test_a_removed_turn_is_gone_and_its_number_may_be_kept(store: TurnStore) -> None:
    turn_id = await ended(store)
    lease = await store.open(turn_id)
    await lease.release()
    await lease.remove()
    assert await store.first(turn_id) is not None, "it is somebody else's by now"
    lease = await store.open(turn_id)
    await lease.remove(reserve=True)
    await lease.release()
    with pytest.raises(FileNotFoundError):
        await store.read(turn_id)
    assert await ended(store) > turn_id


@loop
async def test_a_turn_whose_process_is_gone_is_interrupted(store: TurnStore) -> None:
    async with await Ledger.create(store, started) as ledger:
        await ledger.record(begun("query_analyzer"))
        turn_id = ledger.turn.turn_id
        await ledger.lease.flush()
        running = await TurnArchive(store).require(turn_id)
        assert running.status == "running"
    found = await TurnArchive(store).find(f"r{turn_id}")
    assert found is not None
    assert (found.status, found.stopped_in) == ("interrupted", "query_analyzer")


@loop
async def test_it_may_be_used_from_several_loops(store: TurnStore) -> None:
    turn_id = await ended(store)
    read = await asyncio.to_thread(wait_for, store.read(turn_id))
    assert read == await store.read(turn_id)


@loop
async def test_an_append_is_not_cut_short(store: TurnStore) -> None:
    """Whoever cancels the task: the line is in the journal and in the turn, or in neither."""
    ledger = await Ledger.create(store, started)

    async def record() -> None:
        for _ in range(50):
            await ledger.record(STOPPED)
        await asyncio.sleep(60)

    task = asyncio.create_task(record())
    await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    seen = len(await store.read(ledger.turn.turn_id))
    await ledger.record(STOPPED)
    assert len(await store.read(ledger.turn.turn_id)) == seen + 1
    await ledger.__aexit__(None, None, None)


@loop
async def test_one_task_at_a_time_answers_a_message(store: TurnStore) -> None:
    order: list[str] = []

    async def answer(name: str, message: str) -> None:
        async with store.delivery(message) as delivery:
            order.append(f"{name} begins")
            assert delivery.begun is None
            delivery.begins(7)
            await asyncio.sleep(0.01)
            order.append(f"{name} ends")

    await asyncio.gather(answer("a", "m"), answer("b", "m"), answer("c", "other"))
    assert [line for line in order if line[0] != "c"] in (
        ["a begins", "a ends", "b begins", "b ends"],
        ["b begins", "b ends", "a begins", "a ends"],
    )
    assert order.index("c begins") < 3, "another message does not wait"


@loop
async def test_who_is_cancelled_leaves_the_turn_to_the_next(store: TurnStore) -> None:
    first = started(1)
    message = "\0".join((first.session_id, first.request_id, first.user_id, first.question))
    begun: list[int] = []

    async def answer() -> None:
        async with store.delivery(message) as delivery:
            lease = await store.create()
            await lease.append(first)
            delivery.begins(lease.turn_id)
            begun.append(lease.turn_id)
            try:
                await asyncio.sleep(60)
            finally:
                await lease.append(STOPPED)
                await lease.release()

    task = asyncio.create_task(answer())
    while not begun:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})
    async with store.delivery(message) as delivery:
        assert delivery.begun == begun[0]
        lease = await store.open(begun[0])
        await lease.append(TurnTakenOver(runner=RUNNER, config_digest="c"))
        await lease.release()
    async with store.delivery(message) as delivery:
        assert delivery.begun is None
    with suppress(ZeroDivisionError):
        async with store.delivery("m") as delivery:
            delivery.begins(8)
            raise ZeroDivisionError
    async with store.delivery("m") as delivery:
        assert delivery.begun is None, "a failed turn is resumed by a person"


class Elsewhere(Dispatcher):
    """Has another process run the turn: here another flow on the same store."""

    runs_here = False

    def __init__(self, worker: UnifiedFlow) -> None:
        self.worker = worker

    async def run(self, ledger: Ledger, here: Callable[[], Awaitable[Turn]]) -> Turn:
        turn = ledger.turn
        await ledger.lease.release()
        services = self.worker.services
        taken = await take_over(turn.turn_id, turn.request_id, services)
        assert taken is not None
        with suppress(PhaseError):
            await self.worker.resume(taken)
        ledger.turn = turn = await TurnArchive(services.turns).require(turn.turn_id)
        if turn.status == "failed":
            raise phase_error(turn, "en")
        return turn


@pytest.mark.parametrize("fails", [False, True])
def test_another_process_may_run_the_turn(
    fails: bool, store: TurnStore, home: Path, docs: Path
) -> None:
    over = {"synthesis": ConnectionError("away")} if fails else {}
    worker = scripted_flow(home, docs, turns=store, **over)
    client = scripted_flow(home, docs, turns=store)
    elsewhere = replace(client.services, dispatcher=Elsewhere(worker))
    answer = asyncio.run(UnifiedFlow(elsewhere).process_request("s", QUESTION))
    assert (answer["error"], answer["phase"]) == (fails, "synthesis" if fails else None)
    mended = scripted_flow(home, docs, turns=store, planner=[COMPLETE])
    if fails:
        elsewhere = replace(client.services, dispatcher=Elsewhere(mended))
        request = ResumeRequest(note="plugged in")
        resumed = asyncio.run(resume_turn(UnifiedFlow(elsewhere), 1, request))
        assert (resumed.event.phase, resumed.status) == ("synthesis", "answered")
    turn = wait_for(TurnArchive(store).require(1))
    assert (turn.status, turn.taken_over, turn.resumed) == ("answered", 1, int(fails))


def test_a_turn_that_is_taken_over_keeps_its_counters() -> None:
    turn = replace(
        fold([started(1), begun("planner")]), counters=Counters(planning=4, model_calls=24)
    )
    runner = RUNNER
    taken = apply(turn, TurnTakenOver(runner=runner, config_digest="c"))
    assert (taken.counters, taken.taken_over, taken.runner) == (turn.counters, 1, runner)
    assert (taken.status, taken.stopped_in) == ("running", "planner")
    assert may_be_taken_over(taken)
    again = apply(taken, TurnTakenOver(runner=runner, config_digest="c"))
    assert not may_be_taken_over(again)
    done = PhaseCompleted(phase="planner", visit=1, output=COMPLETE, duration_ms=1.0)
    gets_on = apply(again, done)
    assert gets_on.taken_over == 2  # a slow machine is no poisonous turn
    assert may_be_taken_over(gets_on)
    assert not may_be_taken_over(replace(taken, writes=(Write(call=0, tool="note"),)))
    by_hand = TurnResumed(phase="planner", runner=runner, by="u", via="cli", config_digest="c")
    resumed = apply(taken, by_hand)
    assert (resumed.counters, resumed.taken_over) == (Counters(), 0)


def test_a_program_may_keep_its_turns_in_memory(home: Path, docs: Path) -> None:
    """Asked, failed, resumed and answered, without a file of a turn."""
    store = InMemoryTurnStore()
    failing = scripted_flow(home, docs, turns=store, synthesis=ConnectionError("away"))
    answer = asyncio.run(failing.process_request("s", QUESTION))
    assert (answer["phase"], answer["turn_id"]) == ("synthesis", 1)
    mended = scripted_flow(home, docs, turns=store)
    resumed = asyncio.run(resume_turn(mended, 1, ResumeRequest(note="plugged in")))
    assert (resumed.status, resumed.closed) == ("answered", answer["intervention_id"])
    assert not Turns(home).root.exists()


def test_a_slow_disk_does_not_hold_up_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writes go to threads, several at once."""
    real, inside, most = os.fsync, [0], [0]
    main, blocked = threading.get_ident(), [0.0]

    def slow(descriptor: int) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        began = perf_counter()
        threading.Event().wait(0.02)
        real(descriptor)
        inside[0] -= 1
        if threading.get_ident() == main:
            blocked[0] += perf_counter() - began

    monkeypatch.setattr(os, "fsync", slow)
    store = FileTurnStore(tmp_path / "turns")

    async def run() -> None:
        await asyncio.gather(*(ended(store) for _ in range(8)))

    asyncio.run(run())
    assert blocked == [0.0]
    assert most[0] > 1


async def many(store: TurnStore, turns: int) -> None:
    for _ in range(turns):
        await ended(store)


def test_a_quick_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread would cost more than the write."""
    where: list[bool] = []
    main = threading.get_ident()
    monkeypatch.setattr(os, "fsync", lambda _: where.append(threading.get_ident() == main))
    monkeypatch.setattr("unified_flow.lib.threads.QUICK_S", 10.0)
    asyncio.run(many(FileTurnStore(tmp_path / "turns"), 80))
    assert not any(where[:10]), "nothing is known of the disk yet"
    assert all(where[-10:])
    assert where == sorted(where), "once known, it stays known"


def test_turns_begin_in_threads_while_the_disk_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop waits for six folders of a slow network, and for those of a quick disk."""
    where: list[bool] = []
    main, link, slow_s = threading.get_ident(), os.link, [0.05]

    def linked(*paths: Path) -> None:
        where.append(threading.get_ident() == main)
        threading.Event().wait(slow_s[0])
        link(*paths)

    async def run() -> None:
        store = FileTurnStore(tmp_path / "turns")
        await many(store, 12)
        assert where == [True] * 6 + [False] * 6
        slow_s[0] = 0.0
        async with asyncio.timeout(30):
            while not where[-1]:
                await many(store, 1)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr("unified_flow.lib.threads.QUICK_S", 0.02)
    asyncio.run(run())


def test_one_slow_write_of_a_quick_disk_brings_no_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[bool] = []
    slow = {60, 90}
    main = threading.get_ident()

    def sync(descriptor: int) -> None:
        where.append(threading.get_ident() == main)
        if len(where) in slow:
            threading.Event().wait(0.3)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr("unified_flow.lib.threads.QUICK_S", 0.2)
    asyncio.run(many(FileTurnStore(tmp_path / "turns"), 120))
    assert all(where[59:])


async def begun_without_folder(store: TurnStore) -> tuple[TurnLease, TurnStarted]:
    lease = await store.create(kept=False)
    event = started(lease.turn_id).model_copy(update={"persist": False})
    await lease.append(event)
    await lease.flush()
    return lease, event


@loop
async def test_a_turn_that_is_not_kept_is_seen_while_it_runs(store: TurnStore) -> None:
    lease, event = await begun_without_folder(store)
    turn_id = lease.turn_id
    assert await store.ids() == [turn_id]
    assert await store.first(turn_id) == event
    assert await store.read(turn_id) == [event]
    assert await store.is_held(turn_id)
    with pytest.raises(BlockingIOError):
        await store.open(turn_id)
    assert await store.unreleased() == []
    await lease.remove()
    await lease.release()
    assert await store.ids() == []


def test_a_turn_that_is_not_kept_has_no_folder_until_more_of_it_is_written(tmp_path: Path) -> None:
    store, folder = FileTurnStore(tmp_path / "turns"), tmp_path / "turns/turn_000001"

    async def run() -> None:
        lease, event = await begun_without_folder(store)
        other, _ = await begun_without_folder(store)
        assert not folder.exists()
        await other.remove()
        await lease.append(begun("planner"))
        await lease.flush()
        assert [each.event for each in await store.read(1)] == [event.event, "phase_started"]
        assert (folder / "journal.jsonl").exists()
        assert await store.ids() == [1]
        await lease.remove()

    asyncio.run(run())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("kept", [True, False])
def test_no_other_process_takes_the_number_of_a_turn_that_is_not_kept(
    tmp_path: Path, kept: bool
) -> None:
    one, other = FileTurnStore(tmp_path / "turns"), FileTurnStore(tmp_path / "turns")

    async def run() -> None:
        async with await Ledger.create(other, started):
            pass  # it remembers that the last number is 1
        lease, _ = await begun_without_folder(one)
        taken = await other.create(kept=kept)
        assert (lease.turn_id, taken.turn_id) == (2, 3)
        again = await one.create(kept=not kept)
        assert again.turn_id == 4

    asyncio.run(run())


@pytest.mark.parametrize("links", [True, False])
def test_a_turn_that_is_not_kept_outlives_its_process(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", without_links)
    store = FileTurnStore(tmp_path / "turns")

    async def run() -> None:
        lease, event = await begun_without_folder(store)
        never_begun = await store.create(kept=False)
        for each in (lease, never_begun):
            each._journal._leave()  # type: ignore[attr-defined]  # as when its process ends
        assert await store.unreleased() == [1]
        assert await store.ids() == [1]
        assert await store.read(1) == [event]
        again = await store.open(1)
        await again.remove()
        assert await store.unreleased() == await store.ids() == []

    asyncio.run(run())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def without_links(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_turns_that_were_cut_off_are_found_on_a_disk_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", without_links)
    store = FileTurnStore(tmp_path / "turns")

    async def run() -> None:
        lease = await store.create()
        await lease.append(started(lease.turn_id))
        await lease.flush()
        assert await store.unreleased() == []
        lease._journal._leave()  # type: ignore[attr-defined]  # as when its process ends
        assert await store.unreleased() == [lease.turn_id]

    asyncio.run(run())


class Steps(Generator[Any, Any, Any]):
    """A coroutine whose steps between two waits are timed, in CPU seconds of this thread."""

    def __init__(self, work: Coroutine[Any, Any, Any], took: list[float]) -> None:
        self._work, self._took = work, took

    def send(self, value: Any) -> Any:
        began = thread_time()
        try:
            return self._work.send(value)
        finally:
            self._took.append(thread_time() - began)

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self


def test_no_method_takes_a_millisecond_of_the_loop(tmp_path: Path) -> None:
    """In the median, as a busy machine makes some steps longer."""
    store, took = FileTurnStore(tmp_path / "turns"), defaultdict[str, list[float]](list)

    async def timed(name: str, work: Coroutine[Any, Any, Any]) -> Any:
        return await Steps(work, took[name])

    async def run() -> None:
        for _ in range(40):
            lease = await timed("create", store.create())
            turn_id = lease.turn_id
            await timed("append", lease.append(started(turn_id)))
            await timed("flush", lease.flush())
            for size in (30_000, 3_000_000) if turn_id < 4 else (30_000,):
                said = ModelCalled(
                    phase="planner", model="m", request_digest="", reply="r" * size, duration_ms=1.0
                )
                await timed(f"append {size} characters", lease.append(said))
            await timed("show", lease.show(await store.read(turn_id)))
            await timed("release", lease.release())
            for look in (store.read, store.first, store.mark, store.is_held):
                await timed(look.__name__, look(turn_id))
            for everything in (store.ids, store.marks, store.unreleased):
                await timed(everything.__name__, everything())

    asyncio.run(run())
    assert {name: median(steps) for name, steps in took.items() if median(steps) > 0.001} == {}
