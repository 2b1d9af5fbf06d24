"""Failures that were merged into another's entry, or counted on one, are seen wherever it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from interventions import InterventionQueue
from interventions.admission.notifications import message
from interventions.cli import app
from interventions.entry import complete
from interventions.retry import contract
from interventions.retry.contract import RetryRequest, RetryResult
from interventions.times import utc_now
from interventions.view.groups import grouped, marks, other_failures, single, turns_of_others
from interventions.view.query import parse
from monitor.core.model import TriageModel
from monitor.core.source import Snapshot
from monitor.screens.tabs import OpenTab

Run = Callable[..., Result]
OLD = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def run(home: Path) -> Run:
    def invoke(*words: str, code: int = 0) -> Result:
        env = {"COLUMNS": "160"}
        result = CliRunner().invoke(app, [*words, "--home", str(home)], env=env)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def holder(queue: InterventionQueue, make) -> str:
    """An old entry, the fifth of its session, that took two other failures just now."""
    for turn in range(1, 6):
        put = queue.put(make(session_id="s", turn_id=turn, created_at=OLD, severity="medium"))
    queue.put(make(session_id="s", turn_id=6, error_type="HTTPStatusError", error_message="401 no"))
    for turn in (7, 8):
        more = {"error_type": "DiskFull", "phase": "save", "severity": "critical"}
        queue.put(make(session_id="s", turn_id=turn, error_message="no space", **more))
    assert put.intervention_id
    return put.intervention_id


def test_a_row_says_how_many_how_bad_and_when(holder: str, queue, run: Run) -> None:
    (line,) = [line for line in run("list").stdout.splitlines() if "others" in line]
    assert "NEW [+2 others, crit] Error" in line
    assert "crit  0s " in line.replace("1s", "0s").replace("2s", "0s")
    view = next(v for v in json.loads(run("list", "--json").stdout)["interventions"] if v["others"])
    assert (view["id"], view["others"], view["worst_of_others"]) == (holder, 2, "critical")
    plain = next(v for v in json.loads(run("list", "--json").stdout)["interventions"])
    assert {"others", "worst_of_others"} <= plain.keys()
    model = TriageModel(Snapshot(utc_now(), queue.entries()))
    (group,) = [group for group in model.groups(utc_now()) if group.first["id"] == holder]
    cells = OpenTab(model).cells(group)
    assert [word for cell in cells for word, _ in cell.badges] == ["NEW"]
    assert ("+2", "critical") in [(cell.text, cell.style) for cell in cells]


def test_show_names_each_with_its_turns(holder: str, run: Run) -> None:
    out = run("show", holder).stdout
    assert "Other failures that it holds (2)\n  crit 2 x save DiskFull: no space (" in out
    assert "turns 7, 8)" in out
    assert "high 1 x planner HTTPStatusError: 401 no (" in out
    assert out.index("Other failures") < out.index("Go on with")


@pytest.mark.parametrize(
    "query",
    ["401", "turn:6", "turn:8", "error:disk", "phase:save", "sev:high", '"no space"', "tool:web"],
)
def test_a_query_finds_what_is_inside(queue, make, holder: str, query: str) -> None:
    queue.put(make(session_id="s", turn_id=9, error_type="E", tool="web.fetch"))
    found = parse(query).select(list(queue.entries()), utc_now())
    assert [entry["id"] for entry in found] == [holder]
    assert holder not in [e["id"] for e in parse(f"-{query}").select([*queue.entries()], utc_now())]


def test_a_new_critical_inside_an_old_row_is_announced_like_any(
    queue: InterventionQueue, make, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr(
        "interventions.queue.notify", lambda home, *news: told.append(message(*news))
    )
    model = TriageModel(Snapshot(utc_now(), queue.entries()))
    model.new.clear()
    leak = {"error_type": "Leak", "error_message": "key", "severity": "critical"}
    for turn in (10, 11):
        queue.put(make(session_id="s", turn_id=turn, **leak))
    assert [one["event"] for one in told] == ["new_critical"]
    assert (told[0]["id"], told[0]["error_type"], told[0]["turn_id"]) == (holder, "Leak", 10)
    later = Snapshot(utc_now(), queue.entries())
    assert model.new_critical(later)
    model.update(later)
    assert not model.new_critical(later)
    assert model.new == {holder}


def test_a_regression_inside_an_old_row_is_announced(
    queue: InterventionQueue, make, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr(
        "interventions.queue.notify", lambda home, *news: told.append(message(*news)["event"])
    )
    again = {"error_type": "Again", "error_message": "it broke"}
    queue.resolve(queue.put(make(**again)).intervention_id or "", "mended")
    queue.put(make(session_id="s", **again))
    assert told == ["regression"]
    assert [e["id"] for e in parse("is:regression").select([*queue.entries()], utc_now())] == [
        holder
    ]


def test_watch_prints_an_old_row_that_takes_another_failure(holder: str, run: Run) -> None:
    shown = run("watch", "--all", "--jsonl", "-n", "5").stdout.splitlines()
    assert sorted(json.loads(line)["others"] for line in shown) == [0, 0, 0, 0, 2]


def test_what_is_the_rows_own_is_no_other() -> None:
    def entry(number: int, *rows: dict[str, object]) -> object:
        own = {"id": f"int_1_{number:06}", "created_at": "2026-01-01T00:00:00Z"}
        return complete({**own, "fingerprint": "a", "turn_id": 1, "merged": list(rows)})

    other = {"fingerprint": "b", "severity": "medium", "turns": [4], "sample": {"turn_id": 5}}
    same = {"fingerprint": "a", "turns": [2]}
    assert marks(*single([entry(1, same)]), utc_now()) == []
    alike = [entry(1, other, same), entry(2, {**other, "severity": "high", "count": 3})]
    (row,) = other_failures(alike)
    assert (row["severity"], row["count"]) == ("high", 4)
    assert "[+1 other, high]" in marks(*grouped(alike), utc_now())
    assert turns_of_others(alike[0]) == {4, 5}


@pytest.mark.parametrize("words", [("resolve", "-m", "mended"), ("dismiss",)])
def test_closing_a_row_names_the_others_and_asks(
    queue: InterventionQueue, make, holder: str, run: Run, words: tuple[str, ...]
) -> None:
    refused = run(*words, holder, code=2).stderr
    assert (
        "1 intervention, holding 2 other failures:\n  crit 2 x save DiskFull: no space" in refused
    )
    assert "and what else it holds: without a terminal this needs --yes" in refused
    assert queue.find(holder)["resolution"] is None
    run(*words, holder, "--yes")
    assert not [e for e in queue.entries() if e["id"] == holder and not (
        e["resolved_at"] or e["dismissed_at"])]  # fmt: skip
    plain = queue.put(make()).intervention_id or ""
    run(*words, plain)


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The turns that were retried; each passes."""
    turns: list[int] = []

    class Resumer:
        def retry(self, home: Path, request: RetryRequest) -> RetryResult:
            turns.append(request.turn_id)
            return RetryResult(request.turn_id, "answered")

    monkeypatch.setattr(contract, "find_resumer", Resumer)
    return turns


def test_retry_all_takes_as_alike_only_what_is(
    queue: InterventionQueue, make, holder: str, run: Run, resumed: list[int]
) -> None:
    own = queue.find(holder)
    alike = {name: own[name] for name in ("phase", "error_type", "error_message", "session_id")}
    queue.put(make(**alike, turn_id=9))
    done = run("retry", holder, "--all")
    assert "3 more turns failed with other failures" in done.stderr
    assert "crit 2 x save DiskFull: no space" in done.stderr
    assert sorted(resumed) == [5, 9]
    resumed.clear()
    left = json.loads(run("retry", holder, "--all", "--json").stdout)["not_alike"]
    assert (sorted(resumed), left) == ([5, 9], [6, 7, 8])
    resumed.clear()
    run("retry", holder, "--all", "--yes")
    assert (resumed[0], sorted(resumed)) == (5, [5, 6, 7, 8, 9])


def test_retry_all_refuses_what_is_closed(
    queue: InterventionQueue, holder: str, run: Run, resumed: list[int]
) -> None:
    queue.resolve(holder, "mended")
    assert "is closed" in run("retry", holder, "--all", code=5).stderr
    assert resumed == []
