"""What the monitor reads again and again: only what is new of it."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from interventions import InterventionQueue
from interventions.home import archive_file, emergency_log, error_log, queue_file, state_folder
from monitor.core.feeds import LogTail, feed_reader, follow
from monitor.core.source import LiveSource, TroubleKind

NOW = datetime(2026, 3, 14, 15, tzinfo=UTC)
CLOSED = {"created_at": "2026-01-01T00:00:00Z", "resolved_at": "2026-01-01T02:00:00Z"}


def _append(path: Path, *records: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")


def _no_open_ones(home: Path) -> LiveSource:
    state_folder(home).mkdir()
    queue_file(home).write_text(json.dumps({"version": 1, "interventions": []}))
    return LiveSource(InterventionQueue(home))


def test_what_was_dropped_is_counted_on(home: Path) -> None:
    today, before = emergency_log(home, NOW.date()), emergency_log(home, datetime.min.date())
    queue = InterventionQueue(home)
    full = {"admission": "dropped", "reason": "queue_full"}
    _append(today, {"id": "a", **full}, {"id": "b", "admission": "merged"})
    _append(before, {"id": "c", "admission": "dropped"})
    assert queue.health()["dropped"] == {"queue_full": 1, "unknown": 1}
    _append(today, {"id": "d", **full})
    assert queue.health()["dropped"] == {"queue_full": 2, "unknown": 1}


def test_the_log_goes_on_with_a_new_day_and_begins_with_the_newest(tmp_path: Path) -> None:
    day = [NOW]
    tail = LogTail(tmp_path, lambda: day[0])
    assert tail.read() == []
    _append(error_log(tmp_path, NOW.date()), {"id": "1"}, {"id": "2"})
    assert [record["id"] for _, record in tail.read()] == ["2", "1"]
    day[0] += timedelta(days=1)
    _append(error_log(tmp_path, day[0].date()), {"id": "3"})
    lines = tail.read()
    assert [record["id"] for _, record in lines] == ["3", "2", "1"]
    assert len({key for key, _ in lines}) == 3


def test_the_history_is_read_when_something_changed(home: Path) -> None:
    source = _no_open_ones(home)
    _append(archive_file(home), {"id": "a", **CLOSED})
    read = feed_reader("history", source, lambda: NOW)
    first = read()
    assert [group.key for group in first.found] == ["a"]
    assert read() is first
    _append(archive_file(home), {"id": "b", **CLOSED, "resolved_at": "2026-01-02T02:00:00Z"})
    assert [group.key for group in read().found] == ["b", "a"]


def test_of_the_history_only_what_is_new_is_parsed(home: Path) -> None:
    """A key waits for whatever is parsed meanwhile: 90 ms for a long history."""
    source, archive = _no_open_ones(home), archive_file(home)
    _append(archive, *({"id": f"{n}", **CLOSED, "resolution": "mended"} for n in range(300)))
    before = source.history()
    _append(archive, {"id": "new", **CLOSED, "resolved_at": "2026-01-02T02:00:00Z"})
    new, *after = source.history()
    assert new["id"] == "new"
    assert len(after) == 300
    assert all(entry is known for entry, known in zip(after, before, strict=True))


def test_an_archive_that_another_program_wrote_anew_is_read_anew(home: Path) -> None:
    source, archive = _no_open_ones(home), archive_file(home)
    _append(archive, *({"id": name, **CLOSED, "resolution": f"by {name}"} for name in "abc"))
    assert [entry["resolution"] for entry in source.history()] == ["by c", "by b", "by a"]
    archive.write_bytes(archive.read_bytes().replace(b"by b", b"by x"))  # in its place
    assert [entry["resolution"] for entry in source.history()] == ["by c", "by x", "by a"]
    kept = archive.with_suffix(".new")
    kept.write_bytes(b"".join(archive.read_bytes().splitlines(keepends=True)[1:]))
    kept.replace(archive)  # as when it is pruned: each line has another place
    assert [entry["resolution"] for entry in source.history()] == ["by c", "by x"]


def test_an_archive_that_cannot_be_read_hides_nothing_that_waits(home: Path) -> None:
    state_folder(home).mkdir(exist_ok=True)
    entry = {"id": "int_1_a", "created_at": "2026-01-01T00:00:00Z"}
    queue_file(home).write_text(json.dumps({"version": 1, "interventions": [entry]}))
    archive_file(home).mkdir()
    source = LiveSource(InterventionQueue(home))
    snapshot = source.read()
    assert [one["id"] for one in snapshot.entries] == ["int_1_a"]
    assert snapshot.trouble
    assert snapshot.trouble.kind is TroubleKind.STORAGE
    assert str(archive_file(home)) in snapshot.trouble.what
    assert f"--home {home}" in snapshot.trouble.todo
    assert "cannot read" in feed_reader("history", source, lambda: NOW)().problem


def test_what_takes_long_to_read_is_read_less_often() -> None:
    """Each reading differs from the last, as while the queue changes all the time."""
    shown: list[float] = []

    def read() -> float:
        until_s = time.thread_time() + 0.02
        while time.thread_time() < until_s:
            pass
        return until_s

    async def look_on() -> None:
        following = asyncio.create_task(follow(read, lambda _: shown.append(time.monotonic()), 0))
        while len(shown) < 3:
            await asyncio.sleep(0.01)
        following.cancel()

    asyncio.run(look_on())
    assert shown[2] - shown[0] > 30 * 0.02
