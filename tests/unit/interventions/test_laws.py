"""What holds after any sequence of operations, of any storage; SOAK=1 tries ten times as many."""

from __future__ import annotations

import os
import string
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from interventions import (
    ConflictError,
    InterventionQueue,
    InterventionRequest,
    NotFoundError,
    QueryError,
)
from interventions.entry import complete, is_open
from interventions.recovery import rebuilt
from interventions.storage.file_store import FileStore
from interventions.view.query import KEYS, parse
from tests.unit.interventions.memory_store import MemoryStore
from unified_flow.shared.database import Database
from unified_flow.shared.queue_store import QueueStore

LONG = 10 if os.environ.get("SOAK") else 1
SIZE, SESSION, ERROR = 8, 3, 4
TABLES = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'intervention%'"


class QueueMachine(RuleBasedStateMachine):
    """Puts and transitions in any order, of few sessions and few failures, so that limits bite."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name)
        self.queue = InterventionQueue(
            self.home,
            max_size=SIZE,
            max_per_session=SESSION,
            max_per_error_type=ERROR,
            store=self.store(),
        )
        self.kinds: Counter[str] = Counter()
        self.occurrences = 0

    def store(self) -> Any:
        return MemoryStore(self.home)

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(
        target=ids,
        session=st.sampled_from("abc"),
        error=st.sampled_from("EFG"),
        message=st.sampled_from("xyz"),
        kind=st.sampled_from(["error", "captcha"]),
    )
    def put(self, session: str, error: str, message: str, kind: str) -> str:
        admission = self.queue.put(
            InterventionRequest(
                type=kind,
                severity="high",
                phase="p",
                error_type=error,
                error_message=message,
                session_id=session,
                turn_id=1,
                environment={"known": True},
            )
        )
        self.kinds[str(admission.kind)] += 1
        self.occurrences += bool(admission)
        return admission.intervention_id or "int_none"

    @rule(name=ids, action=st.sampled_from(["resolve", "dismiss", "snooze", "reopen", "assign"]))
    def change(self, name: str, action: str) -> None:
        arguments: dict[str, Any] = {
            "resolve": {"note": "n"},
            "dismiss": {},
            "snooze": {"duration": timedelta(hours=1)},
            "reopen": {},
            "assign": {"owner": "bob"},
        }[action]
        try:
            before = self.queue.find(name)
            getattr(self.queue, action)(name, **arguments)
        except (ConflictError, NotFoundError):
            return
        after = self.queue.find(name)
        assert after["version"] == before["version"] + 1

    @rule(name=ids, action=st.sampled_from(["resolve", "dismiss", "snooze"]))
    def undo_restores(self, name: str, action: str) -> None:
        arguments: dict[str, Any] = {
            "resolve": {"note": "n"},
            "dismiss": {},
            "snooze": {"until_n_more": 2},
        }[action]
        try:
            before = self.queue.find(name)
            getattr(self.queue, action)(name, **arguments)
        except (ConflictError, NotFoundError):
            return
        self.queue.undo(name)
        after = self.queue.find(name)
        changed = {k for k in after if after[k] != before.get(k)} - {"version"}
        assert not changed

    @rule()
    def undo(self) -> None:
        try:
            self.queue.undo()
        except (ConflictError, NotFoundError):
            return

    @invariant()
    def limits_hold(self) -> None:
        entries = self.queue.entries()
        waiting = [entry for entry in entries if is_open(entry)]
        assert len(waiting) <= SIZE
        # A closed one that has just changed goes to the archive with the next change.
        assert len(entries) <= SIZE + 1
        assert all(n <= SESSION for n in Counter(e["session_id"] for e in waiting).values())
        assert all(n <= ERROR for n in Counter(e["error_type"] for e in waiting).values())

    @invariant()
    def nothing_is_lost(self) -> None:
        health = self.queue.health()
        counted = {name: health[name] for name in ("accepted", "merged", "counted")}  # type: ignore[literal-required]
        counted["dropped"] = sum(health["dropped"].values())
        assert counted == {name: self.kinds[name] for name in counted}
        everything = {e["id"]: e for e in (*self.queue.history(), *self.queue.entries())}
        assert len(everything) == self.kinds["accepted"]
        assert sum(e["occurrences"] for e in everything.values()) == self.occurrences
        for entry in everything.values():
            merged = sum(row["count"] for row in entry["merged"])
            assert merged < entry["occurrences"]


class FileQueueMachine(QueueMachine):
    def store(self) -> Any:
        return FileStore(self.home)

    @invariant()
    def the_logs_can_rebuild_it(self) -> None:
        history = FileStore(self.home)
        told = {}
        for entry in self.queue.entries():
            name = entry["id"]
            journal = list(history.journal(name))[::-1]
            again = rebuilt(name, history.archived_one(name), history.failures_of(name), journal)
            assert again is not None
            told[name] = (again["occurrences"], is_open(again), again.get("owner"))
        here = {
            e["id"]: (e["occurrences"], is_open(e), e.get("owner")) for e in self.queue.entries()
        }
        assert told == here
        assert history.missing(here) == []


class PostgresQueueMachine(QueueMachine):
    database: Database

    def store(self) -> Any:
        with self.database.connection() as connection:
            for (table,) in connection.execute(TABLES).fetchall():
                connection.execute(f"TRUNCATE {table}".encode())
        return QueueStore(self.home, self.database)

    @invariant()
    def every_failure_has_a_row(self) -> None:
        with self.database.connection() as connection:
            rows = connection.execute(
                "SELECT admission, count(*) FROM intervention_failures GROUP BY 1"
            ).fetchall()
        assert dict(rows) == {kind: n for kind, n in self.kinds.items() if n}
        waiting, lines = self.queue.store.waiting()
        assert waiting == len(list(lines)) == self.kinds["dropped"]


@pytest.fixture
def _database(database_url: str) -> Iterator[None]:
    with closing(Database(database_url, "it")) as PostgresQueueMachine.database:
        yield


machine_settings = settings(max_examples=30 * LONG, stateful_step_count=30, deadline=None)
TestMemory = QueueMachine.TestCase
TestMemory.settings = machine_settings
TestFile = FileQueueMachine.TestCase
TestFile.settings = settings(max_examples=8 * LONG, stateful_step_count=25, deadline=None)
TestPostgres = pytest.mark.usefixtures("_database")(PostgresQueueMachine.TestCase)
TestPostgres.settings = settings(max_examples=6 * LONG, stateful_step_count=25, deadline=None)

ENTRY = complete(
    {
        "id": "int_20260104_103000_abc123",
        "created_at": "2026-01-04T10:30:00Z",
        "error_message": "it said: no",
        "phase": "planner",
    }
)
NOW = datetime(2026, 1, 4, 12, 0, tzinfo=UTC)

term = st.builds(
    "{}{}:{}".format,
    st.sampled_from(["", "-"]),
    st.sampled_from([*KEYS, "severity", "nonsense"]),
    st.text(string.printable, max_size=8),
)


@given(st.lists(term | st.text(max_size=12), max_size=5).map(" ".join))
@settings(max_examples=120 * LONG, deadline=None)
def test_the_query_parser_never_crashes(text: str) -> None:
    try:
        query = parse(text)
    except QueryError:
        return
    assert query.matches(ENTRY, NOW) in (True, False)


@given(st.text(max_size=30).filter(lambda text: '"' not in text and "\\" not in text))
@settings(max_examples=50 * LONG, deadline=None)
def test_quoted_text_is_looked_for_as_it_is(text: str) -> None:
    if not text:
        return
    entry = {**ENTRY, "error_message": f"before {text} after"}
    assert parse(f'"{text}"').matches(entry, NOW)


def test_the_machines_do_reach_every_admission() -> None:
    machine = QueueMachine()
    for session, error in zip("aabbcaacdd" + "eeff", "EEEEEFFFFF" + "GGGG", strict=True):
        machine.put(session, error, "x", "error")
    machine.put("g", "H", "x", "error")
    machine.teardown()
    assert set(machine.kinds) == {"accepted", "merged", "counted", "dropped"}
