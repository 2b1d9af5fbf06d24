"""However many turns an entry blocks, it knows each of them.

SOAK=1 tries 20,000, the suite some thousands.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest
from freezegun import freeze_time
from typer.testing import CliRunner

from interventions import InterventionQueue
from interventions.admission.preparation import prepare
from interventions.admission.put import admit
from interventions.cli import app
from interventions.entry import is_open, turns_needed
from interventions.home import archive_file, queue_file, transitions_file
from interventions.retry.retries import waiting_turns
from interventions.storage.error_log import log_line
from interventions.times import utc_now
from interventions.view.query import parse

TURNS = 20_000 if os.environ.get("SOAK") else 4_000
FLOOD = dict(error_type="ConnectError", error_message="no model", session_id="one")


def _run(home: Path, *words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--home", str(home)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def _holder(queue: InterventionQueue, make, turns: int) -> str:
    """Five of one session fill it; the newest takes whatever more comes."""
    for number in range(1, 6):
        last = queue.put(make(**FLOOD, turn_id=number)).intervention_id or ""
    _count(queue, make, 6, turns)
    return last


def _count(queue: InterventionQueue, make, first: int, last: int) -> None:
    """As writers do that put for others: many in each transaction."""
    alike = prepare(make(**FLOOD))
    for start in range(first, last + 1, 50):
        with queue.store.transaction(5) as work:
            for turn in range(start, min(start + 50, last + 1)):
                failure = {**alike, "id": f"int_20260101_000000_{turn:06x}", "turn_id": turn}
                result = admit(work, failure, queue.limits, queue.store)
                assert result.admission
                work.to_log.append(log_line(result))


def test_thousands_of_turns_are_kept_listed_and_retried(home: Path, make) -> None:
    queue, beside = InterventionQueue(home), InterventionQueue(home / "beside")
    holder = _holder(queue, make, TURNS - 100)
    _holder(beside, make, 100)
    alike, took = prepare(make(**FLOOD)), {queue: [], beside: []}
    for number in range(1, 101):
        for each, spent in took.items():
            turn = TURNS - 100 + number if each is queue else 100 + number
            failure = {**alike, "id": f"int_20260101_000000_{turn:06x}", "turn_id": turn}
            started = time.process_time()
            each.put_prepared(failure)
            spent.append(time.process_time() - started)
    ratio = median(took[queue]) / median(took[beside])
    print(f"a put at {TURNS:,} turns / at 100: {ratio:.2f}")
    assert ratio < 2
    assert queue_file(home).stat().st_size < 40_000

    wanted = list(range(5, TURNS + 1))
    entry = queue.find(holder)
    assert [entry["turn_id"], *entry["turns"]] == wanted
    assert turns_needed(queue.entries()) == set(range(1, TURNS + 1))
    assert [one.turn_id for one in waiting_turns(entry, [entry])] == wanted
    assert json.loads(_run(home, "show", holder, "--json"))["turns"] == wanted[1:]
    assert f"it blocks turns 6 to {TURNS} too" in _run(home, "show", holder)
    found = parse("turn:7").select(list(queue.entries()), utc_now())
    assert [one["id"] for one in found] == [holder]
    assert queue.supersede([holder], "asked again") == (holder,)


def test_a_turn_that_fails_again_stands_last_and_once(home: Path, make) -> None:
    queue = InterventionQueue(home)
    holder = _holder(queue, make, 400)
    queue.put(make(**FLOOD, turn_id=7))
    assert queue.find(holder)["turns"] == [6, *range(8, 401), 7]


def test_turns_counted_on_an_entry_that_was_closed_since_wait_by_whatever_clock(
    home: Path, make
) -> None:
    """On another machine it is an hour earlier; what was closed before a failure came is done."""
    queue = InterventionQueue(home)
    holder = _holder(queue, make, 10)
    first = queue.entries()[0]["id"]
    with freeze_time(utc_now() - timedelta(hours=1)):
        queue.resolve(holder, "mended")
    waiting = waiting_turns(queue.find(first), queue.entries())
    assert sorted(one.turn_id for one in waiting) == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    for entry in queue.entries():
        if is_open(entry):
            queue.resolve(entry["id"], "mended")
    again = queue.find(queue.put(make(**FLOOD, turn_id=11)).intervention_id or "")
    assert [one.turn_id for one in waiting_turns(again, queue.entries())] == [11]


def test_the_archive_keeps_all_turns_and_a_reopened_entry_has_them(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=6)
    holder = _holder(queue, make, 400)
    assert len(json.loads(queue_file(home).read_text())["interventions"][4]["turns"]) < 200
    assert queue.journal(holder) == []
    queue.dismiss(holder)
    queue.put(make(error_type="Other"))
    queue.put(make(error_type="Another"))
    assert json.loads(archive_file(home).read_text())["turns"] == list(range(6, 401))
    queue.dismiss("last")
    queue.reopen(holder)
    assert queue.find(holder)["turns"] == list(range(6, 401))


def test_a_writer_that_died_after_it_moved_turns_out_costs_none(
    home: Path, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = InterventionQueue(home)
    holder = _holder(queue, make, 205)
    with monkeypatch.context() as dying:
        dying.setattr("os.replace", lambda *of: (_ for _ in ()).throw(OSError(28, "full")))
        assert not queue.put(make(**FLOOD, turn_id=206))
    assert queue.put(make(**FLOOD, turn_id=207))
    assert queue.find(holder)["turns"] == [*range(6, 206), 207]


def test_the_turns_of_an_older_version_are_found_too(home: Path, make) -> None:
    """It noted in the journal what did not fit the file; the log has it all the same."""
    queue = InterventionQueue(home)
    holder = _holder(queue, make, 400)
    line = {"transition_id": "a" * 12, "at": "2026-01-01T00:00:00Z", "action": "turns"}
    moved = {"id": holder, "turns": list(range(6, 301)), "merged": {}}
    transitions_file(home).write_text(json.dumps(line | moved) + "\n")
    assert queue.journal(holder) == []
    assert queue.find(holder)["turns"] == list(range(6, 401))


def test_each_turn_is_known_by_the_failure_that_stopped_it(home: Path, make) -> None:
    queue = InterventionQueue(home)
    for number in range(1, 6):
        queue.put(make(**FLOOD, turn_id=number))
    other = prepare(make(session_id="one", error_type="Other"))
    _count(queue, make, 6, 150)
    for turn in range(151, 301):
        queue.put_prepared({**other, "id": f"int_20260102_000000_{turn:06x}", "turn_id": turn})
    _count(queue, make, 301, 450)
    (entry,) = (entry for entry in queue.entries() if entry["merged"])
    assert entry["merged"][0]["turns"] == list(range(151, 301))
    assert entry["turns"] == list(range(6, 451))
