"""The files that only grow: read on, looked up, never read whole for one entry's sake."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import pytest

from interventions import AmbiguousIdError, InterventionQueue, NotFoundError
from interventions.doctor import examine
from interventions.entry import Entry
from interventions.home import (
    archive_file,
    emergency_log,
    history_index,
    state_folder,
    transitions_file,
)
from interventions.recovery import recover
from interventions.storage import jsonl
from interventions.times import utc_now
from tests import forked


def archive(home: Path, *entries: Mapping[str, object]) -> None:
    """As another program would: at the end, a line each."""
    jsonl.append(archive_file(home), *map(jsonl.encode, entries))


def closed_entry(queue: InterventionQueue, make) -> Entry:
    name = queue.put(make(fingerprint="a" * 16)).intervention_id
    return queue.resolve(name, "restarted it")


def test_what_one_entry_asks_of_a_long_past_is_looked_up(
    home: Path, queue: InterventionQueue, make
) -> None:
    closed = closed_entry(queue, make)
    others = ({**closed, "id": f"int_1_{n:06}", "fingerprint": f"{n}"} for n in range(9))
    archive(home, *others, {**closed, "id": "int_1_again0"})
    queue.put(make(fingerprint="a" * 16))
    now = queue.entries()[-1]
    assert now["regression_of"] == closed["id"]
    assert {one["id"] for one in queue.similar(now["id"])} == {closed["id"], "int_1_again0"}
    assert queue.find("int_1_000003")["fingerprint"] == "3"
    assert queue.find("000003")["id"] == "int_1_000003"
    with pytest.raises(AmbiguousIdError):
        queue.find("00000")
    assert [line["action"] for line in queue.journal(closed["id"])] == ["resolve"]
    archive(home, {**closed, "id": "int_1_later0"})
    assert queue.find("later")["resolution"] == "restarted it"
    assert len(queue.similar(now["id"])) == 3
    assert len(queue.history()) == 12
    assert [one["id"] for one in queue.history(1)] == [closed["id"]]


def test_what_was_resolved_and_later_dismissed_is_known(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=1)
    first = queue.put(make(fingerprint="a" * 16)).intervention_id
    queue.resolve(first, "restarted it")
    queue.reopen(first)
    queue.dismiss(first, "never mind")
    queue.put(make(fingerprint="a" * 16))
    (now,) = queue.entries()
    assert not now.get("regression_of")
    assert [one["id"] for one in queue.similar(now["id"])] == [first]


def test_the_index_is_made_anew_when_it_does_not_fit(
    home: Path, queue: InterventionQueue, make
) -> None:
    closed = closed_entry(queue, make)
    archive(home, {**closed, "id": "int_1_aaaaaa"}, {**closed, "id": "int_1_bbbbbb"})
    assert queue.find("bbbbbb")
    lines = archive_file(home).read_bytes().splitlines(keepends=True)
    # An edit by hand: the lines lie elsewhere, and one is gone.
    archive_file(home).write_bytes(b"\n" + lines[1])
    again = InterventionQueue(home)
    assert [one["id"] for one in again.history()] == [closed["id"], "int_1_bbbbbb"]
    with pytest.raises(NotFoundError):
        again.find("aaaaaa")
    for damage in (b"no index", b""):
        del again
        history_index(home).write_bytes(damage)
        again = InterventionQueue(home)
        assert again.find("bbbbbb")["resolution"] == "restarted it"
    history_index(home).unlink()
    assert InterventionQueue(home).find("bbbbbb")


def test_the_index_stays_whole_when_another_process_closes_it(
    home: Path, queue: InterventionQueue, make
) -> None:
    closed_entry(queue, make)
    again = InterventionQueue(home)  # a second connection of this process
    assert len(again.journal()) == len(queue.journal()) == 1
    code = "import sys; from interventions import InterventionQueue as Q; Q(sys.argv[1]).journal()"
    forked.run([sys.executable, "-c", code, str(home)], check=True)
    assert history_index(home).with_name(f"{history_index(home).name}-wal").exists()


def test_an_entry_leaves_with_a_later_change_than_its_own(home: Path, make) -> None:
    names = [InterventionQueue(home).put(make()).intervention_id for _ in range(3)]
    queue = InterventionQueue(home, max_size=1)
    queue.resolve(names[0], "restarted it")
    # Who is killed in the midst of a change leaves nothing in the archive that was not done.
    assert not archive_file(home).exists()
    queue.assign(names[1], "ada")
    assert [entry["id"] for entry in queue.entries()] == names[1:]
    assert [entry["id"] for entry in queue.history()] == names[:1]


def test_where_no_index_can_be_kept_everything_is_still_found(
    home: Path, queue: InterventionQueue, make
) -> None:
    closed = closed_entry(queue, make)
    archive(home, {**closed, "id": "int_1_aaaaaa"})
    for path in state_folder(home).glob(f"{history_index(home).name}*"):
        path.unlink()
    history_index(home).mkdir()
    queue = InterventionQueue(home)
    assert queue.find("aaaaaa")
    assert queue.health()["median_hours_to_resolve"] is not None
    assert queue.put(make(fingerprint="a" * 16)).kind == "accepted"


@pytest.mark.parametrize("setting", ["archive_entries = 2", "archive_days = 30"])
def test_what_retention_does_not_keep_goes_and_is_no_loss(
    setting: str, home: Path, queue: InterventionQueue, make
) -> None:
    closed = closed_entry(queue, make)
    for number in range(1, 10):
        name, day = f"int_1_{number:06}", f"2026-01-0{number}T00:00:00Z"
        archive(home, {**closed, "id": name, "created_at": day, "resolved_at": day})
    recent = utc_now().isoformat()
    archive(home, *({**closed, "id": f"int_2_{n:06}", "resolved_at": recent} for n in range(2)))
    (home / "unified_flow.toml").write_text(f"[retention]\n{setting}\n")
    assert not any("let go" in finding.what for finding in examine(queue, mend=False))
    said = [finding.what for finding in examine(queue, mend=True) if "let go" in finding.what]
    assert len(said) == 1
    assert "let go of 9 entries" in said[0]
    kept = {closed["id"], "int_2_000000", "int_2_000001"}
    for look in (queue, InterventionQueue(home)):
        assert {entry["id"] for entry in look.history()} == kept
        with pytest.raises(NotFoundError):
            look.find("int_1")
    assert not any("let go" in finding.what for finding in examine(queue, mend=True))
    assert queue.journal()[-1]["action"] == "prune"


def test_a_change_lets_go_of_what_retention_does_not_keep_once_a_day(home: Path, make) -> None:
    (home / "unified_flow.toml").write_text("[retention]\narchive_entries = 2\n")
    queue = InterventionQueue(home, max_size=1)

    def close(queue: InterventionQueue, count: int) -> None:
        for _ in range(count):
            queue.resolve(str(queue.put(make()).intervention_id), "done")

    def pruned() -> int:
        return sum(line["action"] == "prune" for line in queue.journal())

    close(queue, 4)
    assert pruned() == 0  # the first change of the day had nothing to let go of
    close(InterventionQueue(home, max_size=1), 4)
    assert (pruned(), len(queue.history())) == (1, 6)
    close(InterventionQueue(home, max_size=1), 1)
    assert (pruned(), len(queue.history())) == (1, 7)
    queue.store.read()  # nothing of it is a loss


def test_a_failed_change_of_an_older_version_is_none(
    home: Path, queue: InterventionQueue, make
) -> None:
    """It noted a change before it was made, and left the line when the write failed."""
    name = queue.put(make()).intervention_id
    queue.assign(name, "ada")
    (line,) = jsonl.read(transitions_file(home))
    failed = {**line, "transition_id": "f1", "action": "snooze"}
    trailing = {**failed, "transition_id": "f2", "version_from": 2, "version_to": 3}
    transitions_file(home).write_bytes(
        b"".join(jsonl.encode(one) + b"\n" for one in (failed, line, trailing))
    )
    assert [one["action"] for one in queue.journal(name)] == ["assign", "snooze"]
    assert queue.undo()[0]["action"] == "assign"
    with pytest.raises(NotFoundError):
        queue.undo()


def test_a_line_of_odd_values_costs_itself_alone(
    home: Path, queue: InterventionQueue, make
) -> None:
    closed = closed_entry(queue, make)
    odd = jsonl.encode(
        {"transition_id": {}, "id": [], "action": {}, "reason": [], "failure_id": {}}
    )
    dropped = jsonl.encode({"id": {}, "admission": "dropped", "reason": [], "created_at": 5})
    jsonl.append(transitions_file(home), odd)
    jsonl.append(emergency_log(home, utc_now().date()), dropped)
    again = InterventionQueue(home)
    assert [line["action"] for line in again.journal()] == ["resolve"]
    assert [entry["id"] for entry in again.history()] == [closed["id"]]
    assert again.health()["dropped"] == {}


def test_a_loss_without_an_id_is_a_loss(home: Path, queue: InterventionQueue) -> None:
    lost = jsonl.encode({"admission": "dropped", "reason": "storage", "turn_id": 7})
    jsonl.append(emergency_log(home, utc_now().date()), lost, lost)
    assert queue.health()["dropped"] == {"storage": 2}
    assert queue.turns_needed() == {7}
    assert recover(queue, lost=False).unusable == 2


def test_an_index_that_another_process_made_anew_is_read_into_again(
    home: Path, queue: InterventionQueue, make
) -> None:
    archive(home, closed := closed_entry(queue, make))
    assert queue.store.archived_one(closed["id"])
    with queue.store.transaction(1):  # it looks ahead
        pass
    code = """
import sqlite3, sys
from interventions.storage.file_history import _make_anew
_make_anew(sqlite3.connect(sys.argv[1], isolation_level=None).execute)
"""
    forked.run([sys.executable, "-c", code, str(history_index(home))], check=True)
    assert queue.store.archived_one(closed["id"])


def test_lines_are_read_on(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n{"b"')
    assert list(jsonl.lines(path)) == [(0, b'{"a":1}')]
    with path.open("ab") as file:
        file.write(b":2}")
    assert list(jsonl.lines(path, 8)) == [(8, b'{"b":2}')]


def test_a_long_file_is_never_in_memory_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    long = b'{"long":"' + b"x" * 700_000 + b'"}'  # longer than a block
    lines = [*(b'{"n":%d,"pad":"%s"}' % (n, b"-" * 2000) for n in range(5000)), long, b"{}"]
    path.write_bytes(b"\n".join(lines) + b"\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in jsonl.lines(path)) == len(lines)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4_000_000 < path.stat().st_size
    assert [line for _, line in jsonl.lines(path)] == lines


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
