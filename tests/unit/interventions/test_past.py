"""The files that only grow: read on, looked up, never read whole for one entry's sake."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from interventions import InterventionQueue
from interventions.home import archive_file, queue_file
from interventions.storage import jsonl
from interventions.storage.history import Archive


def test_a_long_past_is_read_once(home: Path, queue: InterventionQueue, make) -> None:
    """What one entry asks of the archive and the journal costs no reading of them whole."""
    again = {"fingerprint": "a" * 16, "session_id": "s"}
    queue.put(make(**again))
    first = queue.entries()[0]
    queue.resolve(first["id"], "restarted it")
    closed = queue.find(first["id"])
    queue_file(home).unlink()
    jsonl.append(
        archive_file(home),
        *(jsonl.encode({**closed, "id": f"int_1_{n:06}", "fingerprint": f"{n}"}) for n in range(9)),
        jsonl.encode(closed),
    )
    queue.put(make(**again))
    (now,) = queue.entries()
    assert [one["id"] for one in queue.similar(now["id"])] == [closed["id"]]
    assert queue.find("int_1_000003")["fingerprint"] == "3"
    assert queue.find("000003")["id"] == "int_1_000003"
    assert [line["action"] for line in queue.journal(closed["id"])] == ["resolve"]
    # What is there is known: only what is added is looked at, also by a reader that began before.
    jsonl.append(archive_file(home), jsonl.encode({**closed, "id": "int_1_later0"}))
    assert {one["id"] for one in queue.similar(now["id"])} == {"int_1_later0", closed["id"]}
    assert queue.find("int_1_later0")["resolution"] == "restarted it"


def test_what_was_resolved_and_later_dismissed_is_known(
    home: Path, queue: InterventionQueue, make
) -> None:
    queue.put(make(fingerprint="a" * 16))
    first = queue.entries()[0]["id"]
    queue.resolve(first, "restarted it")
    queue.reopen(first)
    queue.dismiss(first, "never mind")
    Archive(archive_file(home)).append([queue.find(first)])
    queue_file(home).unlink()
    queue.put(make(fingerprint="a" * 16))
    (now,) = queue.entries()
    assert not now.get("regression_of")
    assert [one["id"] for one in queue.similar(now["id"])] == [first]


def _read(tail: jsonl.Tail) -> tuple[bool, list[tuple[int, bytes]]]:
    another, lines = tail.read()
    return another, list(lines)


def test_lines_are_read_on_from_where_the_last_reading_ended(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    tail = jsonl.Tail(path)
    assert _read(tail) == (False, [])
    path.write_bytes(b'{"a":1}\n{"b"')
    assert _read(tail) == (True, [(0, b'{"a":1}')])
    with path.open("ab") as file:
        file.write(b":2}\n")
    assert _read(tail) == (False, [(8, b'{"b":2}')])
    assert _read(tail) == (False, [])
    path.write_bytes(b"{}\n")
    assert _read(tail) == (True, [(0, b"{}")])
    path.unlink()
    assert _read(tail) == (True, [])
    path.write_bytes(b'{"a":1}\n{"b":2}\n')
    assert _read(jsonl.Tail(path, at_most=9)) == (True, [(7, b""), (8, b'{"b":2}')])


def test_a_long_file_is_never_in_memory_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    long = b'{"long":"' + b"x" * 700_000 + b'"}'  # longer than a block
    lines = [*(b'{"n":%d,"pad":"%s"}' % (n, b"-" * 2000) for n in range(5000)), long, b"{}"]
    path.write_bytes(b"\n".join(lines) + b"\n")
    tail = jsonl.Tail(path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in tail.read()[1]) == len(lines)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4_000_000 < path.stat().st_size
    assert _read(tail) == (False, [])
    assert [line for _, line in _read(jsonl.Tail(path))[1]] == lines


def test_what_one_reader_has_begun_no_other_misses(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n{}\n")
    tail = jsonl.Tail(path)
    _, begun = tail.read()
    next(begun)
    assert len(_read(tail)[1]) == 2


def test_entries_whose_retry_passed_are_closed_together_and_what_is_closed_stays(
    queue: InterventionQueue, make
) -> None:
    one, two, dismissed = (queue.put(make(turn_id=7)).intervention_id for _ in range(3))
    queue.dismiss(dismissed)
    ids = [one, two, dismissed, "int_of_nobody"]
    assert queue.close_retried(ids, "new key", outcome="answered", by="ada") == (one, two)
    assert queue.close_retried(ids, "again", outcome="answered") == ()
    for closed in (one, two):
        (row,) = queue.find(closed)["resolutions"]
        assert (row["note"], row["by"], row["verified"]) == ("new key", "ada", True)
        assert row["turn_status"] == "answered"
        assert [line["action"] for line in queue.journal(closed)] == ["resolve"]
    assert queue.find(dismissed)["resolved_at"] is None
