"""The files that only grow: read on, looked up, never read whole for one entry's sake."""

from __future__ import annotations

from pathlib import Path

from interventions import InterventionQueue, jsonl
from interventions.archive import ArchiveFile
from interventions.home import archive_file, queue_file


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
    ArchiveFile(archive_file(home)).append([queue.find(first)])
    queue_file(home).unlink()
    queue.put(make(fingerprint="a" * 16))
    (now,) = queue.entries()
    assert not now.get("regression_of")
    assert [one["id"] for one in queue.similar(now["id"])] == [first]


def test_lines_are_read_on_from_where_the_last_reading_ended(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    tail = jsonl.Tail(path)
    assert tail.read() == (False, [])
    path.write_bytes(b'{"a":1}\n{"b"')
    assert tail.read() == (True, [(0, b'{"a":1}')])
    with path.open("ab") as file:
        file.write(b":2}\n")
    assert tail.read() == (False, [(8, b'{"b":2}')])
    assert tail.read() == (False, [])
    path.write_bytes(b"{}\n")
    assert tail.read() == (True, [(0, b"{}")])
    path.unlink()
    assert tail.read() == (True, [])
    path.write_bytes(b'{"a":1}\n{"b":2}\n')
    assert jsonl.Tail(path, at_most=9).read() == (True, [(7, b""), (8, b'{"b":2}')])
