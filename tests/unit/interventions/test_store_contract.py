"""The same behaviour of every storage: the JSON file, the one in memory, and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from interventions import (
    AmbiguousIdError,
    ConflictError,
    InterventionQueue,
    LimitError,
    LockTimeoutError,
    NotFoundError,
)
from interventions.storage.file_store import FileStore
from interventions.storage.store import Store
from tests.unit.interventions.memory_store import MemoryStore
from unified_flow.shared.database import Database
from unified_flow.shared.queue_store import QueueStore


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: pytest.FixtureRequest, home: Path) -> Iterator[Store]:
    if request.param == "postgres":
        with closing(Database(request.getfixturevalue("database_url"), "it")) as database:
            yield QueueStore(home, database)
    else:
        yield FileStore(home) if request.param == "file" else MemoryStore(home)


@pytest.fixture
def open_queue(store: Store, home: Path) -> Callable[..., InterventionQueue]:
    def build(**options: object) -> InterventionQueue:
        return InterventionQueue(home, store=store, **options)  # type: ignore[arg-type]

    return build


def test_resolving_is_journalled_with_who_when_and_from_where(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    entry = queue.resolve(name, "new key", by="ada", via="cli")
    assert entry["resolved_at"]
    assert entry["resolution"] == "new key"
    assert entry["resolutions"][0]["by"] == "ada"
    (line,) = queue.journal(name)
    assert (line["action"], line["by"], line["via"]) == ("resolve", "ada", "cli")
    assert line["host"]
    assert line["at"].endswith("Z")
    assert (line["version_from"], line["version_to"]) == (1, 2)


def test_closing_what_is_closed_is_a_conflict_that_says_who_was_first(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    queue.resolve(name, "first", by="ada")
    for again in (
        lambda: queue.resolve(name, "second"),
        lambda: queue.dismiss(name),
        lambda: queue.snooze(name, duration=timedelta(hours=1)),
    ):
        with pytest.raises(ConflictError, match="already resolved by ada: first"):
            again()
    assert queue.find(name)["resolution"] == "first"


def test_a_version_that_somebody_changed_is_a_conflict(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    seen = queue.find(name)["version"]
    queue.assign(name, "bob", by="ada")
    with pytest.raises(ConflictError, match="assign by ada"):
        queue.resolve(name, "mine", expected_version=seen)
    queue.resolve(name, "mine", expected_version=seen + 1)


def test_an_occurrence_is_nobodys_change(open_queue, make) -> None:
    queue = open_queue(max_per_session=1)
    name = queue.put(make(session_id="one")).intervention_id
    seen = queue.find(name)["version"]
    queue.put(make(session_id="one"))
    queue.resolve(name, "x", expected_version=seen)


def test_undo_takes_back_the_last_then_the_one_before(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    before = queue.find(name)
    queue.assign(name, "bob")
    queue.snooze(name, until_n_more=3)
    queue.resolve(name, "done")
    undone = [queue.undo()[0]["action"] for _ in range(3)]
    assert undone == ["resolve", "snooze", "assign"]
    with pytest.raises(NotFoundError, match="nothing to undo"):
        queue.undo()
    after = queue.find(name)
    assert {k: after.get(k) for k in before if k != "version"} == {
        k: v for k, v in before.items() if k != "version"
    }


def test_undo_of_another_version_than_was_seen_is_a_conflict(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    seen = queue.resolve(name, "done", by="ada")["version"]
    queue.reopen(name, by="bob")
    with pytest.raises(ConflictError, match="reopen by bob"):
        queue.undo(name, expected_version=seen)
    assert queue.find(name)["resolved_at"] is None
    assert queue.undo(name, expected_version=seen + 1)[0]["action"] == "reopen"
    assert queue.find(name)["resolution"] == "done"


def test_undo_of_one_entry_leaves_the_others(open_queue, make) -> None:
    queue = open_queue()
    first, second = (queue.put(make()).intervention_id for _ in range(2))
    queue.resolve(first, "a")
    queue.resolve(second, "b")
    queue.undo(first)
    assert queue.find(first)["resolved_at"] is None
    assert queue.find(second)["resolution"] == "b"


def test_undo_after_somebody_changed_the_same_field_is_a_conflict(open_queue, store, make) -> None:

    queue = open_queue()
    name = queue.put(make()).intervention_id
    queue.assign(name, "bob")
    with store.transaction(1) as work:
        edited = tuple({**entry, "owner": "by hand"} for entry in work.state.entries)
        work.state = work.state._replace(entries=edited)
    with pytest.raises(ConflictError, match="changed since"):
        queue.undo(name)


def test_reopening_brings_back_from_the_archive(open_queue, make) -> None:
    queue = open_queue(max_size=2)
    first = queue.put(make()).intervention_id
    queue.resolve(first, "too early")
    second = queue.put(make()).intervention_id
    queue.put(make())
    assert first not in {entry["id"] for entry in queue.entries()}
    with pytest.raises(LimitError, match="2 of 2 entries are open"):
        queue.reopen(first)
    queue.resolve(second, "x")
    entry = queue.reopen(first)
    assert entry["resolved_at"] is None
    assert entry["resolutions"][0]["note"] == "too early"
    assert entry["resolutions"][0]["reopened_at"]
    assert first in {entry["id"] for entry in queue.entries()}
    with pytest.raises(ConflictError, match="is open"):
        queue.reopen(first)
    assert [entry["id"] for entry in queue.history()] == [second]


@pytest.mark.parametrize(
    ("options", "fields", "words"),
    [
        ({"max_per_session": 1}, {"session_id": "one"}, "session one has 1 of 1 open"),
        ({"max_per_error_type": 1}, {"error_type": "E"}, "E has 1 of 1 open"),
    ],
)
def test_undo_and_reopen_that_would_pass_a_limit_are_refused(
    open_queue, make, options, fields, words
) -> None:
    queue = open_queue(**options)
    first = queue.put(make(**fields)).intervention_id
    queue.resolve(first, "x")
    queue.put(make(**fields))
    with pytest.raises(LimitError, match=words):
        queue.undo(first)
    with pytest.raises(LimitError, match=words):
        queue.reopen(first)


def test_dismissed_is_not_solved(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    entry = queue.dismiss(name, "a test rig")
    assert entry["resolved_at"] is None
    assert entry["dismissed_at"]
    assert queue.health()["median_hours_to_resolve"] is None
    assert queue.health()["unresolved"] == 0


def test_a_snooze_needs_exactly_one_end(open_queue, make) -> None:
    queue = open_queue()
    name = queue.put(make()).intervention_id
    past = datetime(2020, 1, 1, tzinfo=UTC)
    for bad in ({}, {"until": past}, {"until_n_more": 0}, {"until": past, "until_n_more": 3}):
        with pytest.raises(ValueError, match=r"snooze|future|from 1"):
            queue.snooze(name, **bad)
    with pytest.raises(ValueError, match="time zone"):
        queue.snooze(name, until=datetime(2030, 1, 1))
    entry = queue.snooze(name, until=datetime(2099, 1, 1, tzinfo=UTC))
    assert entry["snoozed_until"] == "2099-01-01T00:00:00Z"
    assert queue.health()["snoozed"] == 1
    assert queue.health()["unresolved"] == 1


def test_similar_lists_past_resolutions_of_the_same_failure(open_queue, make) -> None:
    queue = open_queue(max_size=2)
    failure = {"error_type": "E", "error_message": "again"}
    notes = []
    for note in ("first cure", "second cure"):
        name = queue.put(make(**failure)).intervention_id
        queue.resolve(name, note)
        notes.append(note)
    queue.put(make())
    current = queue.put(make(**failure)).intervention_id
    past = queue.similar(current)
    assert [entry["resolution"] for entry in past] == notes[::-1]


def test_an_id_may_be_any_unique_prefix(open_queue, make) -> None:
    queue = open_queue()
    ids = [
        queue.put(make(id=f"int_20260104_103000_{tail}")).intervention_id
        for tail in ("abc123", "abd456", "ffffff")
    ]
    assert queue.find("abc")["id"] == ids[0]
    assert queue.find(ids[1])["id"] == ids[1]
    assert queue.find("f")["id"] == ids[2]
    for wanted in ("ab", "int_2026"):
        with pytest.raises(AmbiguousIdError) as caught:
            queue.find(wanted)
        assert set(ids[:2]) <= set(caught.value.candidates)
    for wanted in ("zzz", "", "  "):
        with pytest.raises(NotFoundError):
            queue.find(wanted)


def test_a_transaction_that_fails_changes_nothing(open_queue, store, make) -> None:
    queue = open_queue()
    queue.put(make())
    before = store.read()

    def fail_midway() -> None:
        with store.transaction(1) as work:
            work.state = type(work.state)()
            work.to_journal.append({"action": "resolve"})
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        fail_midway()
    assert store.read() == before
    assert list(store.journal()) == []


def test_a_lock_that_is_held_too_long_is_its_own_error(store) -> None:
    import threading

    outcome: list[Exception] = []

    def second() -> None:
        try:
            with store.transaction(0.05):
                pass
        except LockTimeoutError as error:
            outcome.append(error)

    with store.transaction(1):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "0.05 s" in str(outcome[0])
    with store.transaction(1):
        pass


def test_health_has_the_documents_keys(open_queue, make) -> None:
    queue = open_queue()
    health = queue.health()
    assert list(health)[:5] == [
        "total",
        "unresolved",
        "by_priority",
        "oldest_unresolved_age_hours",
        "queue_health",
    ]
    assert health["by_priority"] == {"critical": 0, "high": 0, "medium": 0}
    assert health["queue_health"] == "healthy"
    for _ in range(9):
        queue.put(make(severity="critical"))
    assert queue.health()["queue_health"] == "healthy"
    queue.put(make())
    assert queue.health()["queue_health"] == "warning"
    for _ in range(20):
        queue.put(make())
    health = queue.health()
    assert health["queue_health"] == "critical"
    assert health["by_priority"] == {"critical": 9, "high": 21, "medium": 0}


def test_what_was_reopened_is_no_past_of_a_failure(open_queue, make) -> None:
    queue = open_queue(max_size=1)
    failure = {"error_type": "E", "error_message": "again"}
    older = queue.put(make(**failure)).intervention_id
    queue.resolve(older, "older fix")
    name = queue.put(make(**failure)).intervention_id
    queue.resolve(name, "did not help")
    other = queue.put(make()).intervention_id
    queue.resolve(other, "gone")
    queue.reopen(name)
    queue = open_queue(max_size=5)
    again = queue.find(queue.put(make(**failure)).intervention_id)
    assert (again["regression_of"], again["regression_note"]) == (older, "older fix")


def test_a_prefix_that_fits_queue_and_archive_is_ambiguous(open_queue, make) -> None:
    queue = open_queue(max_size=1)
    names = ["int_20260101_000000_abc111", "int_20260101_000000_abc222"]
    queue.put(make(id=names[0]))
    queue.resolve(names[0], "x")
    queue.put(make(id=names[1]))
    with pytest.raises(AmbiguousIdError) as caught:
        queue.resolve("abc", "y")
    assert caught.value.candidates == names
    assert queue.find("abc1")["id"] == names[0]
    assert queue.find("abc2")["id"] == names[1]
