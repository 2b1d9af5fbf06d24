"""What failed over a window of time, every failure once, and what became of it."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from interventions import InterventionQueue, InterventionRequest
from interventions.health import Window, trends
from interventions.home import error_log_folder, history_index
from interventions.storage.store import ClosedFigures, FailureCount

NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)


def _put(queue: InterventionQueue, hours_ago: float, **fields: Any) -> str | None:
    moment = NOW - timedelta(hours=hours_ago)
    given: dict[str, Any] = {
        "type": "error",
        "severity": "high",
        "phase": "planner",
        "error_type": "ValueError",
        "error_message": "no plan",
        "session_id": f"s{hours_ago}",
        "turn_id": 1,
        "created_at": moment,
    }
    with freeze_time(moment):
        return queue.put(InterventionRequest(**given | fields)).intervention_id


def test_every_failure_counts_once_whatever_became_of_it(home: Path) -> None:
    queue = InterventionQueue(home, max_size=3, max_per_session=1)
    first = _put(queue, 5)
    _put(queue, 4, session_id="a", severity="critical", error_type="KeyError")
    _put(queue, 3, session_id="a", error_type="OSError", phase="save")  # merged
    _put(queue, 2.5, session_id="b", error_type="OSError", phase="save")
    _put(queue, 2, session_id="c", phase="save")  # dropped: three are open
    assert first
    queue.resolve(first, "mended")
    found = queue.trends(Window.DAY, NOW)
    assert found["failures"] == 5
    assert found["admissions"] == {"accepted": 3, "merged": 1, "dropped": 1}
    assert found["by_phase"] == {"save": 3, "planner": 2}
    assert found["since"] == "2026-03-13T16:00:00Z"
    assert found["by_severity"]["high"][-6:] == [1, 0, 2, 1, 0, 0]
    assert found["by_severity"]["critical"][-5:] == [1, 0, 0, 0, 0]
    worst = found["causes"][0]
    assert (worst["count"], worst["phase"]) == (2, "save")
    assert worst["sample"] == "OSError: no plan"
    assert queue.trends(Window.HOUR, NOW)["failures"] == 0
    assert queue.trends(Window.MONTH, NOW)["failures"] == 5


def test_an_archived_entry_counts_without_its_log(home: Path) -> None:
    queue = InterventionQueue(home, max_size=1)
    for hours_ago in (3, 2):
        with freeze_time(NOW - timedelta(hours=1)):
            queue.resolve(_put(queue, hours_ago) or "", "mended")
    shutil.rmtree(error_log_folder(home))
    history_index(home).unlink()
    found = InterventionQueue(home).trends(Window.DAY, NOW)
    assert found["failures"] == 1  # the other is in the queue file, and its line was the log's
    assert found["causes"][0]["sample"] == "ValueError: no plan"
    assert found["outcomes"]["unverified"] == 2
    assert found["outcomes"]["median_hours"] == 1.5
    assert found["outcomes"]["took"]["1 hour"] == found["outcomes"]["took"]["8 hours"] == 1


COUNTS = st.builds(
    FailureCount,
    step=st.integers(0, 29),
    severity=st.integers(0, 3),
    phase=st.sampled_from(["planner", "save"]),
    fingerprint=st.sampled_from(["a", "b", "c"]),
    admission=st.sampled_from(["accepted", "dropped"]),
    failures=st.integers(1, 9),
)


@given(st.lists(COUNTS), st.sampled_from(Window))
def test_every_sum_is_the_number_of_failures(counts: list[FailureCount], window: Window) -> None:
    found = trends(counts, ClosedFigures([], 0, 0, 0), [], window, NOW)
    sums = (
        sum(map(sum, found["by_severity"].values())),
        sum(found["by_phase"].values()),
        sum(found["admissions"].values()),
        sum(cause["count"] for cause in found["causes"]),
    )
    assert set(sums) == {found["failures"]}


@pytest.mark.parametrize("window", Window)
def test_now_is_in_the_last_step(window: Window) -> None:
    since = window.since(NOW)
    assert since + window.step * (window.steps - 1) <= NOW < since + window.step * window.steps


def test_what_was_closed_before_the_window_is_no_outcome_of_it(home: Path) -> None:
    """Most are in the archive, one is in the queue file, and one was reopened from the archive."""
    queue = InterventionQueue(home, max_size=1)
    again = _resolve(queue, 721, took_hours=100)
    with freeze_time(NOW - timedelta(hours=1)):
        retried = _put(queue, 1.5, error_message="quickly mended") or ""
        queue.close_retried([retried], "mended", outcome="answered")
    _resolve(queue, 31, took_hours=30, error_message="slowly mended")
    with freeze_time(NOW - timedelta(hours=1)):
        queue.dismiss(_put(queue, 2, error_message="no bug") or "", "known")
    _resolve(queue, 2, took_hours=1, error_message="slowly mended")  # it came back
    found = queue.trends(Window.DAY, NOW)["outcomes"]
    counts = [found[name] for name in ("verified", "unverified", "dismissed", "regressions")]
    assert counts == [1, 2, 1, 1]
    assert (found["median_hours"], found["slowest_tenth_hours"]) == (1, 30)
    with freeze_time(NOW):
        queue.reopen(again)
    assert queue.trends(Window.DAY, NOW)["outcomes"]["unverified"] == 2
    health = queue.health(now=NOW)
    assert (health["median_hours_to_resolve"], health["regressions"]) == (1, 1)


def test_no_time_is_negative_after_a_clock_was_set_back(home: Path) -> None:
    """Nor in an index that an earlier version has made."""
    queue = InterventionQueue(home, max_size=1)
    _resolve(queue, 3, took_hours=-1)
    _resolve(queue, 2, took_hours=-1, error_message="again")
    assert queue.health(now=NOW)["median_hours_to_resolve"] == 0
    with sqlite3.connect(history_index(home)) as index:
        index.execute("UPDATE intervention_archive SET hours = -1.0")
    index.close()
    assert queue.health(now=NOW)["median_hours_to_resolve"] == 0


def _resolve(
    queue: InterventionQueue, hours_ago: float, *, took_hours: float, **fields: Any
) -> str:
    name = _put(queue, hours_ago, **fields) or ""
    with freeze_time(NOW - timedelta(hours=hours_ago - took_hours)):
        queue.resolve(name, "mended")
    return name
