"""Puts of writers that wait are committed by whoever has the lock: once each, whatever happens."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import cast

from interventions import InterventionQueue, InterventionRequest
from interventions.entry import Entry
from interventions.home import queue_file
from interventions.storage.group_commit import FORGOTTEN_AFTER_S, Letter
from tests.error_log import error_lines

KEYS = {"version", "interventions", "dropped", "admitted", "failures"}


def request(name: str) -> InterventionRequest:
    return InterventionRequest(
        type="error",
        severity="high",
        phase="p",
        error_type=f"E{name}",
        error_message=f"{name} broke",
        session_id=name,
        turn_id=1,
        environment={"known": True},
    )


def letters(home: Path) -> list[Path]:
    return sorted((home / "shared_state" / "intervention_queue.json").parent.glob("*.letters/*"))


def wait_until_there_are(home: Path, count: int) -> None:
    while len(letters(home)) < count:
        time.sleep(0.005)


def waiting(home: Path, names: str, **limits: int) -> tuple[list[threading.Thread], dict[str, str]]:
    """Each put on its own queue object, as from a process of its own."""
    answers: dict[str, str] = {}

    def put(name: str) -> None:
        queue = InterventionQueue(home, lock_timeout_s=240, **limits)
        answers[name] = str(queue.put(request(name)).kind)

    threads = [threading.Thread(target=put, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    return threads, answers


def test_one_write_commits_all_who_wait_and_each_gets_its_answer(home: Path) -> None:
    first = InterventionQueue(home)
    first.put(request("first"))
    with first.store.transaction(20):
        threads, answers = waiting(home, "abcdef")
        wait_until_there_are(home, 6)
    for thread in threads:
        thread.join()
    assert answers == dict.fromkeys("abcdef", "accepted")
    assert sorted(entry["session_id"] for entry in first.entries()) == [*"abcdef", "first"]
    assert len(list(error_lines(home))) == 7
    assert letters(home) == []
    first.put(request("last"))
    assert json.loads(queue_file(home).read_text()).keys() == KEYS


def test_each_letter_has_the_limits_of_its_writer(home: Path) -> None:
    queue = InterventionQueue(home)
    for name in ("one", "two"):
        queue.put(request(name))
    with queue.store.transaction(20):
        small, small_answers = waiting(home, "a", max_size=2)
        wait_until_there_are(home, 1)
        large, large_answers = waiting(home, "bc")
        wait_until_there_are(home, 3)
    for thread in (*small, *large):
        thread.join()
    assert small_answers == {"a": "dropped"}
    assert set(large_answers.values()) == {"accepted"}
    assert queue.health()["dropped"] == {"queue_full": 1}


def test_the_letter_of_a_writer_that_died_is_put_and_logged_once(home: Path) -> None:
    queue = InterventionQueue(home)
    queue.put(request("first"))
    failure = {**queue.entries()[0], "id": "int_20260104_103000_dead00", "session_id": "dead"}
    Letter(home, cast(Entry, failure), queue.limits).post()
    for number in range(3):
        queue.put(request(f"later{number}"))
    dead = [entry for entry in queue.entries() if entry["session_id"] == "dead"]
    assert len(dead) == 1
    assert letters(home) == []
    assert [line["session_id"] for line in error_lines(home)].count("dead") == 1


def test_an_old_letter_is_nobodys(home: Path) -> None:
    queue = InterventionQueue(home)
    queue.put(request("first"))
    failure = {**queue.entries()[0], "id": "int_20260104_103000_dead00", "session_id": "dead"}
    Letter(home, cast(Entry, failure), queue.limits).post()
    long_ago = time.time() - FORGOTTEN_AFTER_S - 1
    os.utime(letters(home)[0], (long_ago, long_ago))
    queue.put(request("x"))
    assert letters(home) == []
    assert sorted(entry["session_id"] for entry in queue.entries()) == ["first", "x"]


def test_a_half_written_letter_harms_nobody(home: Path) -> None:
    queue = InterventionQueue(home)
    queue.put(request("first"))
    folder = home / "shared_state" / "intervention_queue.letters"
    folder.mkdir()
    for name, text in (("1-1-a", '{"failure": {"id"'), ("1-2-b", "[]"), ("1-3-c", "{}")):
        (folder / name).write_text(text)
    assert queue.put(request("second")).kind == "accepted"
    assert len(queue.entries()) == 2


def test_who_gives_up_waiting_leaves_no_letter_behind(home: Path) -> None:
    queue = InterventionQueue(home)
    queue.put(request("first"))
    with queue.store.transaction(20):
        admission = InterventionQueue(home, lock_timeout_s=0.1).put(request("hasty"))
        assert (admission.kind, admission.reason) == ("dropped", "lock_timeout")
        assert letters(home) == []
    queue.put(request("next"))
    assert [entry["session_id"] for entry in queue.entries()] == ["first", "next"]


def test_who_waits_and_then_writes_itself_is_not_put_by_the_next(home: Path) -> None:
    """Many writers that alternate between waiting and leading: each put exactly once."""
    InterventionQueue(home).put(request("first"))
    big = {"max_size": 10**6, "max_per_session": 10**6}

    def put_many(name: str) -> None:
        queue = InterventionQueue(home, lock_timeout_s=30, **big)
        for number in range(25):
            assert queue.put(request(f"{name}{number}"))

    threads = [threading.Thread(target=put_many, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sessions = [entry["session_id"] for entry in InterventionQueue(home).entries()]
    assert len(sessions) == len(set(sessions)) == 201
