"""Nothing lost: real processes on one queue, and real kills.

SOAK=1 makes the runs as long as the issue asks for; the suite runs short forms.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from interventions import InterventionQueue, InterventionRequest
from interventions.home import queue_file
from tests import forked
from tests.error_log import error_lines

SOAK = bool(os.environ.get("SOAK"))
NO_CAP = 10**9


def start(home: Path, what: str, name: str, count: int | None = None) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.concurrency.queue_worker", str(home), what, name]
    words += [str(count)] if count is not None else []
    return forked.Process(words, cwd=forked.REPOSITORY, stdout=subprocess.PIPE, text=True)


def finish(workers: list[subprocess.Popen[str]]) -> list[list[str]]:
    answers = [worker.communicate(timeout=300)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return answers


def test_eight_processes_put_a_thousand_and_none_is_lost(home: Path) -> None:
    each = 125
    answers = finish([start(home, "puts", f"w{n}", each) for n in range(8)])
    acknowledged = [name for answer in answers for name in answer]
    entries = InterventionQueue(home).entries()
    assert len(entries) == 1000
    assert {entry["id"] for entry in entries} == set(acknowledged)
    assert len(set(acknowledged)) == 1000
    assert {(entry["session_id"], entry["turn_id"]) for entry in entries} == {
        (f"w{worker}", number) for worker in range(8) for number in range(each)
    }
    document = json.loads(queue_file(home).read_text())
    assert document["admitted"] == {"accepted": 1000}
    assert len(list(error_lines(home))) == 1000


def test_puts_and_resolves_mixed(home: Path) -> None:
    answers = finish([start(home, "mixed", f"w{n}", 40) for n in range(8)])
    queue = InterventionQueue(home)
    entries = {entry["id"]: entry for entry in queue.entries()}
    assert set(entries) == {name for answer in answers for name in answer}
    assert sum(1 for entry in entries.values() if entry["resolved_at"]) == 160
    assert all(entry["version"] == 2 for entry in entries.values() if entry["resolved_at"])
    assert len(queue.journal()) == 160


def test_beside_a_program_that_takes_the_lock_with_plain_filelock(home: Path) -> None:
    InterventionQueue(home).put(
        InterventionRequest(
            type="error",
            severity="high",
            phase="p",
            error_type="E",
            error_message="first",
            session_id="s",
            turn_id=1,
        )
    )
    ours = [start(home, "puts", f"w{n}", 40) for n in range(3)]
    theirs = [start(home, "plain", f"f{n}", 15) for n in range(2)]
    answers = finish([*ours, *theirs])
    present = {entry["id"] for entry in InterventionQueue(home).entries()}
    assert {name for answer in answers for name in answer} <= present
    assert len(present) == 1 + 3 * 40 + 2 * 15


def test_threads_of_one_process(home: Path) -> None:
    queue = InterventionQueue(home, max_size=NO_CAP, max_per_session=NO_CAP)

    def run(name: str) -> None:
        for number in range(25):
            queue.put(
                InterventionRequest(
                    type="error",
                    severity="high",
                    phase="p",
                    error_type=f"E{name}{number // 5}",
                    error_message="x",
                    session_id=name,
                    turn_id=number,
                )
            )

    threads = [threading.Thread(target=run, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(queue.entries()) == 200


def _put_in_child(queue: InterventionQueue, count: int) -> None:
    for number in range(count):
        assert queue.put(
            InterventionRequest(
                type="error",
                severity="high",
                phase="p",
                error_type=f"E{os.getpid()}{number}",
                error_message="x",
                session_id=f"{os.getpid()}",
                turn_id=number,
            )
        )


def test_a_fork_while_another_thread_holds_the_lock(home: Path) -> None:
    queue = InterventionQueue(home, max_size=NO_CAP, max_per_session=NO_CAP, lock_timeout_s=20)
    _put_in_child(queue, 1)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with queue.store.transaction(20):
            held.set()
            let_go.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(20)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_put_in_child, args=(queue, 20)) for _ in range(3)]
    for child in children:
        child.start()
    let_go.set()
    holder.join()
    _put_in_child(queue, 20)
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert len(queue.entries()) == 1 + 20 + 60


def _collect(worker: subprocess.Popen[str], into: list[str]) -> None:
    assert worker.stdout is not None
    with worker.stdout as lines:
        into += (line.strip() for line in lines if line.endswith("\n"))


def test_kill_dash_nine_at_random_moments(home: Path) -> None:
    """Four writers; again and again one of them is killed in the midst of its work."""
    kills = 200 if SOAK else 25
    chance = random.Random(7)
    acknowledged: list[str] = []
    readers: list[threading.Thread] = []
    numbers = iter(range(10**6))

    def spawn() -> subprocess.Popen[str]:
        worker = start(home, "forever", f"w{next(numbers)}")
        reader = threading.Thread(target=_collect, args=(worker, acknowledged))
        reader.start()
        readers.append(reader)
        return worker

    workers = [spawn() for _ in range(4)]
    left_over = 0
    for _ in range(kills):
        # Let work happen, then strike at a random moment of it.
        goal, deadline = len(acknowledged) + chance.randrange(1, 6), time.monotonic() + 60
        while len(acknowledged) < goal and time.monotonic() < deadline:
            time.sleep(chance.random() * 0.003)
        victim = chance.randrange(4)
        workers[victim].send_signal(signal.SIGKILL)
        workers[victim].wait()
        json.loads(queue_file(home).read_text())
        left_over = max(left_over, len(list(home.rglob("*.tmp"))))
        workers[victim] = spawn()
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    for reader in readers:
        reader.join()

    queue = InterventionQueue(home)
    json.loads(queue_file(home).read_text())
    everything = {entry["id"]: entry for entry in (*queue.history(), *queue.entries())}
    known = set(everything)
    failures = [(entry["session_id"], entry["turn_id"]) for entry in everything.values()]
    assert len(failures) == len(set(failures)), "a failure was put twice"
    assert set(acknowledged) <= known
    assert len(acknowledged) == len(set(acknowledged)) > kills
    assert len(list(home.rglob("*.tmp"))) <= kills + 4
    assert left_over <= kills
    with queue.store.transaction(20):
        pass
    assert not list(home.rglob("*.tmp"))
    assert not list(home.rglob("*corrupt*"))


@pytest.mark.skipif(not SOAK, reason="a long run: SOAK=1")
def test_eight_processes_for_long(home: Path) -> None:
    answers = finish([start(home, "mixed", f"w{n}", 200) for n in range(8)])
    entries = {entry["id"] for entry in InterventionQueue(home).entries()}
    assert entries == {name for answer in answers for name in answer}
