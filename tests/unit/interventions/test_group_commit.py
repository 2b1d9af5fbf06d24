"""Letters of writers that wait: each is put once, answered once, and none lies there for ever."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.admission.preparation import prepare
from interventions.entry import Entry
from interventions.home import lock_file, queue_file
from interventions.storage import file_store as file_store_module
from interventions.storage import group_commit as letters_module
from interventions.storage.file_store import FileStore
from interventions.storage.group_commit import FORGOTTEN_AFTER_S, Letter, answer_all
from interventions.storage.store import Limits, PutResult, Transaction
from tests.error_log import error_lines

LIMITS = Limits(50, 5, 10)


def post(home: Path, failure: Entry) -> Letter:
    letter = Letter(home, failure, LIMITS)
    letter.post()
    return letter


def folder(home: Path) -> Path:
    return queue_file(home).with_suffix(".letters")


def make_old(home: Path) -> None:
    for path in folder(home).iterdir():
        os.utime(path, (0, time.time() - FORGOTTEN_AFTER_S - 1))


def test_half_a_letter_goes_when_it_is_old(queue: InterventionQueue, make, home: Path) -> None:
    post(home, prepare(make(), home))
    (path,) = folder(home).iterdir()
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
    assert not Letter(home, prepare(make(), home), LIMITS).is_answered()
    assert list(folder(home).iterdir()) == []


def test_a_writer_that_died_gets_its_line_in_the_log(
    queue: InterventionQueue, make, home: Path
) -> None:
    failure = prepare(make(error_message="left alone"), home)
    post(home, failure)
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
    queue = InterventionQueue(home)
    impatient = InterventionQueue(home, lock_timeout_s=0.5)
    gave_up = threading.Event()
    write, give_up = FileStore._write, Letter.answer_or_withdraw

    def once_there(
        home: Path, work: Transaction, admit: Callable[[Entry, Limits], PutResult]
    ) -> None:
        while not (folder(home).is_dir() and any(folder(home).iterdir())):
            time.sleep(0.001)
        while not letters_module._open(next(folder(home).iterdir())):
            time.sleep(0.001)
        answer_all(home, work, admit)

    def late(store: FileStore, state: object) -> None:
        assert gave_up.wait(10)
        write(store, state)

    def noticed(letter: Letter) -> PutResult | None:
        gave_up.set()
        return give_up(letter)

    monkeypatch.setattr(file_store_module, "answer_all", once_there)
    monkeypatch.setattr(FileStore, "_write", late)
    monkeypatch.setattr(Letter, "answer_or_withdraw", noticed)
    admissions = []
    holder = threading.Thread(target=lambda: queue.put(make()))
    holder.start()
    while not lock_file(home).exists():
        time.sleep(0.001)
    admissions.append(impatient.put(make(error_message="in a letter")))
    holder.join()
    assert [admission.kind for admission in admissions] == ["accepted"]
    assert [e["error_message"] for e in queue.entries()].count("in a letter") == 1
    assert not list((home / "logs" / "errors").glob("emergency_*"))


def test_a_committed_put_is_not_dropped_because_the_answer_cannot_be_looked_up(
    make, home: Path
) -> None:
    letter = post(home, prepare(make(), home))
    (path,) = folder(home).iterdir()
    path.rename(path.with_name(path.name + ".claimed"))
    answer = {"kind": "accepted", "id": "int_x", "reason": "", "detail": "", "failure": {}}
    tail = json.dumps({"letters": {path.name: {**answer, "event": "new_critical"}}})
    queue_file(home).write_text("{ damaged meanwhile\n], " + tail[1:])
    assert letter.is_answered()
    assert (letter.answer.admission.kind, letter.answer.entry) == ("accepted", None)
