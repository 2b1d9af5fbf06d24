"""However many turns an entry blocks, it knows each of them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median

import pytest
from typer.testing import CliRunner

from interventions import InterventionQueue
from interventions.admission.preparation import prepare
from interventions.admission.put import admit
from interventions.cli import app
from interventions.entry import turns_needed
from interventions.home import archive_file, queue_file, turns_folder
from interventions.retry.retries import waiting_turns
from interventions.times import utc_now
from interventions.view.query import parse

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
                assert admit(work, failure, queue.limits, queue.store)


def _put_ms(queue: InterventionQueue, make, turns: range) -> float:
    alike, took = prepare(make(**FLOOD)), []
    for turn in turns:
        started = time.perf_counter()
        queue.put_prepared({**alike, "id": f"int_20260101_000000_{turn:06x}", "turn_id": turn})
        took.append(time.perf_counter() - started)
    return median(took) * 1000


def test_twenty_thousand_turns_are_kept_listed_and_retried(home: Path, make) -> None:
    queue = InterventionQueue(home)
    holder = _holder(queue, make, 100)
    early = _put_ms(queue, make, range(101, 201))
    _count(queue, make, 201, 19_800)
    late = _put_ms(queue, make, range(19_801, 20_001))
    print(f"a put at 20,000 turns / at 100: {late / early:.2f}")
    assert late < 2.5 * early
    assert queue_file(home).stat().st_size < 40_000

    wanted = list(range(5, 20_001))
    entry = queue.find(holder)
    assert [entry["turn_id"], *entry["turns"]] == wanted
    assert turns_needed(queue.entries()) == set(range(1, 20_001))
    assert [one.turn_id for one in waiting_turns(entry, [entry])] == wanted
    assert json.loads(_run(home, "show", holder, "--json"))["turns"] == wanted[1:]
    assert "it blocks turns 6 to 20000 too" in _run(home, "show", holder)
    found = parse("turn:7").select(list(queue.entries()), utc_now())
    assert [one["id"] for one in found] == [holder]
    assert len(queue.supersede(7, "asked again")) == 1


def test_a_turn_that_fails_again_stands_last_and_once(home: Path, make) -> None:
    queue = InterventionQueue(home)
    holder = _holder(queue, make, 400)
    queue.put(make(**FLOOD, turn_id=7))
    assert queue.find(holder)["turns"] == [6, *range(8, 401), 7]


def test_the_archive_keeps_all_turns_and_a_reopened_entry_has_them(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=6)
    holder = _holder(queue, make, 400)
    assert list(turns_folder(home).iterdir())
    queue.dismiss(holder)
    queue.put(make(error_type="Other"))
    queue.put(make(error_type="Another"))
    assert json.loads(archive_file(home).read_text())["turns"] == list(range(6, 401))
    assert list(turns_folder(home).iterdir()) == []
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
