"""Programs and people at one queue, again and again killed in the midst of what they do.

SOAK=1 kills 10,000 of them (SOAK_KILLS for another number); the suite a few hundred.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from interventions.doctor import examine
from interventions.entry import Entry, is_open
from interventions.home import queue_file
from interventions.recovery import recover
from interventions.storage import jsonl
from interventions.storage.file_store import FileStore
from tests import forked
from tests.concurrency.kill_worker import ROOM

SOAK = bool(os.environ.get("SOAK"))
KILLS = int(os.environ.get("SOAK_KILLS", "10000")) if SOAK else 500
BETWEEN = 6 if SOAK else 4  # one more than are acknowledged between two kills at the most
WORKERS, AT_ONCE = 4, 2  # of so many so many are killed at a time


class Killed:
    """Workers that are killed, and what they had acknowledged."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self._home, self._chance = home, chance
        self._started = 0
        self._readers: list[threading.Thread] = []
        self.told: list[dict[str, Any]] = []
        self._workers = [self._start() for _ in range(WORKERS)]

    def _start(self) -> subprocess.Popen[str]:
        self._started += 1
        number = str(self._started)
        words = [sys.executable, "-m", "tests.concurrency.kill_worker"]
        words += [str(self._home), f"w{number}", number, *["cli"][: self._started % 2]]
        worker = forked.Process(words, cwd=forked.REPOSITORY, stdout=subprocess.PIPE, text=True)
        reader = threading.Thread(target=self._read, args=(worker,))
        reader.start()
        self._readers.append(reader)
        return worker

    def _read(self, worker: subprocess.Popen[str]) -> None:
        assert worker.stdout is not None
        with worker.stdout as lines:
            self.told += (json.loads(line) for line in lines if line.endswith("\n"))

    def kill(self) -> None:
        goal, deadline = len(self.told) + self._chance.randrange(BETWEEN), time.monotonic() + 60
        while len(self.told) < goal and time.monotonic() < deadline:
            time.sleep(self._chance.random() * 0.003)
        for victim in self._chance.sample(range(WORKERS), AT_ONCE):
            self._end(self._workers[victim])
            self._workers[victim] = self._start()

    def end(self) -> None:
        for worker in self._workers:
            self._end(worker)
        for reader in self._readers:
            reader.join()

    def _end(self, worker: subprocess.Popen[str]) -> None:
        worker.send_signal(signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL, "it ended by itself"


def everything(queue: InterventionQueue) -> dict[str, Entry]:
    return {entry["id"]: entry for entry in (*queue.history(), *queue.entries())}


@pytest.mark.long
def test_nothing_acknowledged_is_lost_and_nothing_happens_by_half(home: Path) -> None:
    chance = random.Random(11)
    killed = Killed(home, chance)
    for _ in range(KILLS // AT_ONCE):
        killed.kill()
    killed.end()
    queue = InterventionQueue(home, max_size=ROOM)
    queue.store.read()  # raises if it lacks what was acknowledged
    with queue.store.transaction(20) as work:
        work.state = work.state._replace()  # another one is written
    entries = everything(queue)
    check(queue, entries, killed.told)

    # Every loss of the file is told, and mended from what is beside it.
    waiting = {name: entry for name, entry in entries.items() if is_open(entry)}
    queue_file(home).write_bytes(queue_file(home).read_bytes()[: chance.randrange(2000)])
    examine(queue, mend=True)
    after = everything(InterventionQueue(home))
    check(queue, after, killed.told)
    assert {name: seen(entry) for name, entry in after.items() if is_open(entry)} == {
        name: seen(entry) for name, entry in waiting.items()
    }
    recover(InterventionQueue(home, max_size=10**6, max_per_session=10**6), lost=False)
    check(queue, everything(InterventionQueue(home)), killed.told)
    assert not [path for path in home.rglob(".*.tmp")]


def seen(entry: Entry) -> tuple[Any, ...]:
    return entry["version"], entry["occurrences"], entry.get("snoozed_until_occurrences")


def check(queue: InterventionQueue, entries: dict[str, Entry], told: list[dict[str, Any]]) -> None:
    failures = [(entry["session_id"], entry["turn_id"]) for entry in entries.values()]
    assert len(failures) == len(set(failures)), "a failure was put twice"
    logs = (home_lines(queue.home)) | set(failures)
    journal: dict[str, list[tuple[int, int, str]]] = {}
    for line in queue.journal():
        if "version_to" in line:
            row = (line["version_from"], line["version_to"], line["action"])
            journal.setdefault(line["id"] or "", []).append(row)
    for name, entry in entries.items():
        made = journal.get(name, [])
        steps = [(number, number + 1) for number in range(1, entry["version"])]
        assert [row[:2] for row in made] == steps, (name, made, entry["version"])
        assert bool(entry["resolved_at"]) == (resolved_by(made)), name
    for line in told:
        if "put" in line:
            assert line["put"] in entries or tuple(line["turn"]) in logs, line
        elif "drained" in line:
            assert set(line["drained"].values()) <= entries.keys(), line
        else:
            wanted = (line["version"] - 1, line["version"], line["change"])
            assert wanted in journal[line["id"]], line
    assert FileStore(queue.home).missing(entries) == []


def resolved_by(made: list[tuple[int, int, str]]) -> bool:
    """Whether these changes, one after another, leave it resolved."""
    stack: list[str] = []
    for _, _, action in made:
        if action == "undo":
            stack.pop()
        else:
            stack.append(action)
    return "resolve" in stack


def home_lines(home: Path) -> set[tuple[str, int]]:
    """The failures that are whole in the emergency log."""
    return {
        (line["session_id"], line["turn_id"])
        for path in (home / "logs" / "errors").glob("emergency_*.jsonl")
        for line in jsonl.read(path)
    }
