"""Letters of writers that wait: each is put once, answered once, and none lies there for ever."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
from filelock import FileLock

from interventions import InterventionQueue
from interventions.admission.preparation import prepare
from interventions.home import lock_file, queue_file
from interventions.storage import letters as letters_module
from interventions.storage.error_log import error_lines
from interventions.storage.file_store import FileStore
from interventions.storage.letters import FORGOTTEN_AFTER_S, Letters
from interventions.storage.lock import FairLock
from interventions.storage.store import Limits

LIMITS = Limits(50, 5, 10)


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open() as turnstile:
        try:
            fcntl.flock(turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def folder(home: Path) -> Path:
    return queue_file(home).with_suffix(".letters")


def make_old(home: Path) -> None:
    for path in folder(home).iterdir():
        os.utime(path, (0, time.time() - FORGOTTEN_AFTER_S - 1))


def test_half_a_letter_goes_when_it_is_old(queue: InterventionQueue, make, home: Path) -> None:
    letters = Letters(home)
    name = letters.post(prepare(make(), home), LIMITS)
    path = folder(home) / str(name)
    path.write_bytes(path.read_bytes()[:50])
    queue.put(make())
    assert path.exists()
    make_old(home)
    queue.put(make())
    assert not path.exists()
    assert len(queue.entries()) == 2


def test_a_letter_that_cannot_be_written_whole_is_none(
    make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters_module.os, "write", lambda fd, data: 3)
    assert Letters(home).post(prepare(make(), home), LIMITS) is None
    assert list(folder(home).iterdir()) == []


def test_a_writer_that_died_gets_its_line_in_the_log(
    queue: InterventionQueue, make, home: Path
) -> None:
    failure = prepare(make(error_message="left alone"), home)
    Letters(home).post(failure, LIMITS)
    queue.put(make())
    assert len(queue.entries()) == 2
    make_old(home)
    for _ in range(3):
        queue.put(make())
    assert list(folder(home).iterdir()) == []
    lines = [line for line in error_lines(home) if line["error_message"] == "left alone"]
    assert [line["admission"] for line in lines] == ["accepted"]
    assert len(queue.entries()) == 5


def test_a_writer_whose_time_is_up_while_its_letter_is_committed_hears_of_it(
    make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder has read the letter, the writer gives up, the holder commits: one put, not two."""
    import threading

    queue = InterventionQueue(home)
    queue.put(make())
    impatient = InterventionQueue(home, lock_timeout_s=0.05)
    claimed, gave_up = threading.Event(), threading.Event()
    write, withdraw = FileStore._write, Letters.withdraw

    def late(store: FileStore, state: object) -> None:
        claimed.set()
        assert gave_up.wait(10)
        write(store, state)

    def noticed(letters: Letters, name: str) -> bool:
        outcome = withdraw(letters, name)
        gave_up.set()
        return outcome

    monkeypatch.setattr(FileStore, "_write", late)
    monkeypatch.setattr(Letters, "withdraw", noticed)
    admissions = []
    waiter = threading.Thread(
        target=lambda: admissions.append(impatient.put(make(error_message="in a letter")))
    )
    plain = FileLock(lock_file(home))
    plain.acquire()
    holder = threading.Thread(target=lambda: queue.put(make()))
    with monkeypatch.context() as patch:
        # The holder of the turnstile waits for a foreign program until the letter is there.
        patch.setattr(FairLock, "_yield_to_waiters", lambda self: None)
        holder.start()
        while not _is_locked(queue_file(home).with_suffix(".json.turnstile")):
            time.sleep(0.001)
        waiter.start()
        while not (folder(home).is_dir() and any(folder(home).iterdir())):
            time.sleep(0.001)
        plain.release()
        waiter.join()
        holder.join()
    assert [admission.kind for admission in admissions] == ["accepted"]
    assert [e["error_message"] for e in queue.entries()].count("in a letter") == 1
    assert not list((home / "logs" / "errors").glob("emergency_*"))


def test_a_committed_put_is_not_dropped_because_the_answer_cannot_be_looked_up(
    make, home: Path
) -> None:
    letters = Letters(home)
    failure = prepare(make(), home)
    answer = {"kind": "accepted", "id": "int_x", "reason": "", "detail": "", "failure": {}}
    queue_file(home).parent.mkdir()
    queue_file(home).write_text("{ damaged meanwhile")
    outcome = letters._outcome({**answer, "event": "new_critical", "known": False}, failure)
    assert outcome is not None
    assert (outcome.admission.kind, outcome.entry) == ("accepted", None)
