"""Homes that share a database, workers as real processes, and a model that can be held up."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import pytest

from tests.answers import ANALYSIS, APPROVE, COMPLETE, DRAFT, PROCEED
from tests.forked import Process
from tests.servers.fixtures import VARIABLE
from tests.servers.model_server import Behaviour, Connection, Entry, ModelServer, answer
from unified_flow.flow import UnifiedFlow
from unified_flow.shared.database import Database
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.stores import turn_store

T = TypeVar("T")

LIMIT_S = 240.0
WORKER = (sys.executable, "-m", "unified_flow", "worker")
StartWorker = Callable[..., Process]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, "the database of the test")
    yield opened
    opened.close()


@pytest.fixture
def shared_home(home: Path, database_url: str) -> Iterator[Path]:
    (home / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
    yield home
    close_stores(home)


def close_stores(home: Path) -> None:
    """What all flows of this process have open in the database of the home."""
    store = turn_store(home)
    assert isinstance(store, PostgresTurnStore)
    store.database.close()


@pytest.fixture
def served_home(shared_home: Path, model_server: ModelServer) -> Path:
    """Every phase asks the model server, which answers well."""
    model_server.script = script()
    settings = f'model = "test-model"\nsize = "large"\nbase_url = "{model_server.url}"\n'
    file = shared_home / "unified_flow.toml"
    file.write_text(settings + file.read_text() + "polling_s = 0.2\n")
    return shared_home


@pytest.fixture
def start_worker(tmp_path: Path, served_home: Path) -> Iterator[StartWorker]:
    """Starts a worker of another home with the same settings, and waits until it takes turns."""
    started: list[Process] = []

    def start(*arguments: str, code: str | None = None, **env: str) -> Process:
        place = tmp_path / f"worker{len(started)}"
        place.mkdir()
        settings = (served_home / "unified_flow.toml").read_text()
        (place / "unified_flow.toml").write_text(settings)
        command = WORKER if code is None else (sys.executable, "-c", code, "worker")
        process = Process(
            [*command, "--home", str(place), *arguments],
            stdout=subprocess.PIPE,
            env=os.environ | env,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("worker ")
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def client(served_home: Path) -> UnifiedFlow:
    """Enqueues and follows."""
    return UnifiedFlow.from_config(served_home)


@pytest.fixture
def gate(served_home: Path, model_server: ModelServer) -> Iterator[Gate]:
    """Every turn waits in it for its answer."""
    gate = Gate(DRAFT)
    model_server.script = script(synthesis=gate)
    yield gate
    gate.open.set()


async def within(asking: Coroutine[Any, Any, T]) -> T:
    """A test that fails must not wait for an answer that nobody will give."""
    async with asyncio.timeout(3 * LIMIT_S):
        return await asking


def script(**over: Entry) -> dict[str, Entry]:
    good = {
        "query_analyzer": ANALYSIS,
        "reflection": PROCEED,
        "planner": COMPLETE,
        "synthesis": DRAFT,
        "validation": APPROVE,
    }
    return {**good, **over}


class Gate:
    """A model's answer that waits until it is let through; `reached` counts who came."""

    def __init__(self, then: Entry) -> None:
        self.reached = threading.Semaphore(0)
        self.open = threading.Event()
        self._then: Behaviour = then if callable(then) else answer(then)

    def __call__(self, connection: Connection) -> None:
        self.reached.release()
        self.open.wait(LIMIT_S)
        self._then(connection)

    def wait_for_one(self) -> None:
        assert self.reached.acquire(timeout=LIMIT_S)


def wait_until(database: Database, query: str) -> bool:
    ends_at = monotonic() + LIMIT_S
    while monotonic() < ends_at:
        with database.connection() as connection:
            row = connection.execute(query.encode()).fetchone()
        if row is not None and row[0]:
            return True
        sleep(0.05)
    raise AssertionError(f"not within {LIMIT_S:g} s: {query}")
