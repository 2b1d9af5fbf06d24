"""Letters of writers that wait: each is put once, answered once, and none lies there for ever."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from interventions import InterventionQueue
from interventions.admission.preparation import prepare
from interventions.entry import Entry
from interventions.home import error_log, lock_file, queue_file
from interventions.recovery import Recovery, recover
from interventions.settings import Limits
from interventions.storage import file_store as file_store_module
from interventions.storage import group_commit as letters_module
from interventions.storage.error_log import log_emergency, log_failures, log_line
from interventions.storage.file_store import FileStore
from interventions.storage.group_commit import FORGOTTEN_AFTER_S, Letter, claim_letters
from interventions.storage.store import Admission, AdmissionKind, PutResult
from interventions.times import utc_now
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
    assert len(list(folder(home).iterdir())) == 1
    make_old(home)
    queue.put(make())
    assert list(folder(home).iterdir()) == []
    assert len(queue.entries()) == 2


def test_a_letter_that_cannot_be_written_whole_is_none(
    make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters_module.os, "write", lambda fd, data: 3)
    assert not Letter(home, prepare(make(), home), LIMITS).poll()
    assert list(folder(home).iterdir()) == []


def test_a_writer_that_died_gets_its_line_in_the_log(
    queue: InterventionQueue, make, home: Path
) -> None:
    post(home, prepare(make(error_message="left alone"), home))
    for _ in range(3):
        queue.put(make())
    assert list(folder(home).iterdir()) == []
    lines = [line for line in error_lines(home) if line["error_message"] == "left alone"]
    assert [line["admission"] for line in lines] == ["accepted"]
    assert len(queue.entries()) == 4


def test_a_letter_outlives_its_holder_only_until_the_next(
    make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder is killed after the queue file, or after the log: the failure is put once."""
    letters = []
    for name in ("remove_letters", "log_failures"):
        letters.append(post(home, prepare(make(error_message=name), home)))
        with monkeypatch.context() as killed:
            killed.setattr(file_store_module, name, lambda *_, **__: None)
            InterventionQueue(home).put(make())
        assert not letters[-1].is_answered()
        assert len(list(folder(home).iterdir())) == 1
        with InterventionQueue(home).store.transaction(20):
            pass
        assert letters[-1].is_answered()
    assert [letter.answer.admission.kind for letter in letters] == ["accepted", "accepted"]
    assert len(InterventionQueue(home).entries()) == len(list(error_lines(home))) == 4


def test_without_a_log_each_letter_is_put_once_all_the_same(
    queue: InterventionQueue, make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = [post(home, prepare(make(), home)) for _ in range(2)]
    log = error_log(home, utc_now().date())
    log.mkdir(parents=True)
    for _ in range(3):
        assert InterventionQueue(home).put(make())
    assert len(queue.entries()) == 5
    with queue.store.transaction(20) as work:
        assert all(letter.is_answered(work.state.failures) for letter in letters)
    log.rmdir()
    assert queue.put(make())
    assert all(letter.is_answered() for letter in letters)
    assert len(queue.entries()) == 6


def test_a_writer_whose_time_is_up_while_its_letter_is_committed_hears_of_it(
    make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder has read the letter, the writer gives up, the holder commits: one put, not two."""
    queue = InterventionQueue(home)
    impatient = InterventionQueue(home, lock_timeout_s=0.5)
    gave_up = threading.Event()
    write, give_up = FileStore._write, Letter.answer_or_withdraw

    def once_there(home: Path, answered: Collection[str]) -> Iterator[tuple[str, Entry, Limits]]:
        while not (folder(home).is_dir() and any(folder(home).iterdir())):
            time.sleep(0.001)
        while not letters_module._open(next(folder(home).iterdir())):
            time.sleep(0.001)
        yield from claim_letters(home, answered)

    def late(store: FileStore, state: object) -> None:
        assert gave_up.wait(10)
        write(store, state)

    def noticed(letter: Letter) -> PutResult | None:
        gave_up.set()
        return give_up(letter)

    monkeypatch.setattr(file_store_module, "claim_letters", once_there)
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
    letter = post(home, failure := prepare(make(), home))
    (path,) = folder(home).iterdir()
    admission = Admission(AdmissionKind.ACCEPTED, "int_x")
    result = PutResult(failure, admission, failure, "new_critical")
    log_failures(home, [log_line(result, path.name)])
    path.unlink()
    queue_file(home).write_text("damaged meanwhile")
    assert letter.is_answered()
    assert (letter.answer.admission, letter.answer.entry) == (admission, None)
    assert letter.answer.failure == failure


@pytest.mark.parametrize("first", ["the writer gives up", "the holder commits"])
def test_what_was_put_after_its_writer_had_given_up_is_not_drained(
    first: str, queue: InterventionQueue, make, home: Path
) -> None:
    failure = prepare(make(), home)
    post(home, failure)
    steps = [
        lambda: log_emergency(
            home, failure, Admission(AdmissionKind.DROPPED, None, "lock_timeout")
        ),
        lambda: queue.put(make()),
    ]
    for step in steps if first == "the writer gives up" else steps[::-1]:
        step()
        queue.health()
    assert recover(queue, lost=False) == Recovery()
    assert len(queue.entries()) == 2
