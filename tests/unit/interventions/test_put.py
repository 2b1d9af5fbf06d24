"""The four admissions in the document's order, and the two cases before them."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue, InterventionRequest
from interventions.errors import LimitError
from interventions.home import queue_file
from interventions.recovery import recover


def log_lines(home: Path, pattern: str = "2*.jsonl") -> list[dict[str, Any]]:
    files = (home / "logs" / "errors").glob(pattern)
    return [json.loads(line) for path in sorted(files) for line in path.read_text().splitlines()]


def test_a_full_queue_drops_with_one_emergency_line_and_a_critical_record(
    home: Path, make, caplog: pytest.LogCaptureFixture
) -> None:
    queue = InterventionQueue(home)
    for _ in range(50):
        assert queue.put(make()).kind == "accepted"
    assert queue.is_full()
    with caplog.at_level(logging.CRITICAL, logger="interventions"):
        admission = queue.put(make(type="captcha", error_message="one too many"))
    assert (admission.kind, admission.reason) == ("dropped", "queue_full")
    assert admission.intervention_id is None
    assert not admission
    assert [record.getMessage() for record in caplog.records] == [
        "INTERVENTION QUEUE FULL (50). Dropping: captcha"
    ]
    (emergency,) = log_lines(home, "emergency_*.jsonl")
    assert emergency["error_message"] == "one too many"
    assert len(log_lines(home)) == 51
    assert len(queue.entries()) == 50
    document = json.loads((home / "shared_state" / "intervention_queue.json").read_text())
    assert document["dropped"] == {"queue_full": 1}


def test_size_comes_before_session_and_error_type(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=5)
    for _ in range(5):
        queue.put(make(session_id="one", error_type="E"))
    assert queue.put(make(session_id="one", error_type="E")).kind == "dropped"


def test_session_comes_before_error_type(home: Path, make) -> None:
    queue = InterventionQueue(home, max_per_error_type=5)
    for _ in range(5):
        queue.put(make(session_id="one", error_type="E"))
    admission = queue.put(make(session_id="one", error_type="E"))
    assert (admission.kind, admission.reason) == ("merged", "session")


def test_the_sixth_of_a_session_merges_into_its_newest_of_the_same_type(queue, make) -> None:
    for kind in ("captcha", "error", "captcha", "error", "error"):
        queue.put(make(session_id="one", type=kind))
    third = queue.entries()[2]
    admission = queue.put(make(session_id="one", type="captcha", error_message="yet another"))
    assert (admission.kind, admission.intervention_id) == ("merged", third["id"])
    (row,) = queue.find(third["id"])["merged"]
    assert row["count"] == 1
    assert row["sample"]["error_message"] == "yet another"
    assert queue.find(third["id"])["occurrences"] == 2


def test_among_those_the_same_fingerprint_comes_first(queue, make) -> None:
    for number in range(5):
        queue.put(make(session_id="one", error_type="E", error_message=f"kind {'abcde'[number]}"))
    second = queue.entries()[1]
    again = make(session_id="one", error_type="E", error_message="kind b", turn_id=99)
    assert queue.put(again).intervention_id == second["id"]
    entry = queue.find(second["id"])
    assert entry["occurrences"] == 2
    assert entry["latest_sample"]["turn_id"] == 99
    assert entry["merged"] == []


def test_a_session_without_that_type_merges_into_its_newest(queue, make) -> None:
    for _ in range(5):
        queue.put(make(session_id="one"))
    newest = queue.entries()[-1]
    assert queue.put(make(session_id="one", type="permission")).intervention_id == newest["id"]


def test_the_eleventh_of_an_error_type_is_counted(queue, make) -> None:
    for _ in range(10):
        queue.put(make(error_type="TimeoutError"))
    newest = queue.entries()[-1]
    admission = queue.put(make(error_type="TimeoutError"))
    assert (admission.kind, admission.reason) == ("counted", "error_type")
    assert admission.intervention_id == newest["id"]
    assert queue.find(newest["id"])["occurrences"] == 2
    fourth = queue.entries()[3]
    same = make(error_type="TimeoutError", error_message=fourth["error_message"])
    assert queue.put(same).intervention_id == fourth["id"]


def test_whoever_waits_for_a_person_has_an_entry_of_their_own(home: Path, make) -> None:
    """As long as there is room at all; and they leave the failures theirs."""
    queue = InterventionQueue(home, max_size=14)
    message = make(type="escalation", request_id="r", context={"query": "?"})
    once, twice = queue.put(message), queue.put(message)
    assert (twice.reason, twice.intervention_id) == ("delivered", once.intervention_id)
    queue.resolve(once.intervention_id or "", "answered")
    for _ in range(12):
        asked = queue.put(make(type="escalation", session_id="one", error_type="HumanNeededError"))
        assert asked.kind == "accepted"
    assert queue.put(make(session_id="one")).kind == "accepted"
    closed = asked.intervention_id or ""
    queue.resolve(closed, "answered")
    assert queue.reopen(closed)["id"] == closed
    queue.put(make(session_id="two"))
    assert queue.put(make(type="escalation", session_id="one")).reason == "queue_full"
    assert len(log_lines(home, "emergency_*.jsonl")) == 1


def test_one_session_does_not_take_all_the_room_with_its_questions(home: Path, make) -> None:
    queue = InterventionQueue(home, max_escalations_per_session=2)
    first, _ = (queue.put(make(type="escalation", session_id="one")) for _ in range(2))
    third = queue.put(make(type="escalation", session_id="one"))
    assert (third.kind, third.reason) == ("dropped", "session_escalations")
    assert "has 2 of 2 escalations open" in third.detail
    assert len(log_lines(home, "emergency_*.jsonl")) == 1
    assert queue.put(make(type="escalation", session_id="two")).kind == "accepted"
    queue.resolve(first.intervention_id or "", "answered")
    assert len(recover(queue, lost=False).put) == 1
    with pytest.raises(LimitError, match="2 of 2 escalations"):
        queue.reopen(first.intervention_id or "")


def test_resolved_entries_count_for_no_limit_and_are_archived_when_room_is_needed(
    home: Path, make
) -> None:
    queue = InterventionQueue(home, max_size=3)
    ids = [queue.put(make()).intervention_id for _ in range(3)]
    for name in ids[:2]:
        queue.resolve(name, "mended")
    assert [entry["id"] for entry in queue.entries()] == ids
    fourth = queue.put(make()).intervention_id
    assert [entry["id"] for entry in queue.entries()] == [ids[1], ids[2], fourth]
    queue.put(make())
    assert queue.put(make()).kind == "dropped"
    assert {entry["id"] for entry in queue.history()} == set(ids[:2])
    assert queue.find(ids[0])["resolution"] == "mended"


def test_a_critical_failure_is_not_hidden_by_the_entry_it_merges_into(queue, make) -> None:
    for _ in range(5):
        queue.put(make(session_id="one", severity="medium"))
    admission = queue.put(make(session_id="one", severity="critical"))
    assert queue.find(admission.intervention_id)["severity"] == "critical"


def test_merging_never_loses_which_failures_were_merged(queue, make) -> None:
    for _ in range(5):
        queue.put(make(session_id="one"))
    admission = None
    for number in range(260):
        message = "".join(chr(97 + int(digit)) for digit in str(number % 130))
        admission = queue.put(make(session_id="one", error_type="E", error_message=message))
    entry = queue.find(admission.intervention_id)
    assert entry["occurrences"] == 261
    assert sum(row["count"] for row in entry["merged"]) == 260
    named = [row for row in entry["merged"] if row["fingerprint"]]
    assert len(named) == 100
    assert [row["count"] for row in named] == [2] * 100
    assert entry["merged"][-1]["error_type"] == "(others)"
    assert "sample" in named[0]


def test_a_snoozed_failure_is_counted_before_any_limit(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=1)
    first = queue.put(make(error_type="E", error_message="again")).intervention_id
    queue.snooze(first, duration=timedelta(hours=1))
    admission = queue.put(make(error_type="E", error_message="again"))
    assert (admission.kind, admission.intervention_id) == ("counted", first)
    assert admission.reason == "snoozed"
    assert queue.put(make()).kind == "dropped"


def test_a_snooze_of_n_more_ends_with_the_nth(queue, make) -> None:
    first = queue.put(make(error_type="E", error_message="again")).intervention_id
    queue.snooze(first, until_n_more=2)
    kinds = [queue.put(make(error_type="E", error_message="again")).kind for _ in range(3)]
    assert kinds == ["counted", "counted", "accepted"]


def test_a_retried_turn_that_fails_in_the_same_phase_is_one_more_occurrence(queue, make) -> None:
    first = queue.put(make(phase="planner")).intervention_id
    admission = queue.put(make(phase="planner", retry_of=first))
    assert (admission.kind, admission.intervention_id) == ("counted", first)
    assert queue.find(first)["occurrences"] == 2


def test_a_retried_turn_that_fails_later_closes_the_old_entry_and_puts_a_new_one(
    home: Path, make
) -> None:
    queue = InterventionQueue(home, max_size=1)
    first = queue.put(make(phase="planner")).intervention_id
    admission = queue.put(make(phase="synthesis", retry_of=first))
    assert admission.kind == "accepted"
    old = queue.find(first)
    assert "got past planner" in old["resolution"]
    assert queue.journal(first)[-1]["via"] == "retry"


def test_a_resolved_failure_that_comes_back_is_a_regression(home: Path, make) -> None:
    queue = InterventionQueue(home, max_size=2)
    failure = {"error_type": "E", "error_message": "again"}
    first = queue.put(make(**failure)).intervention_id
    queue.resolve(first, "raised the time-out")
    second = queue.put(make(**failure)).intervention_id
    entry = queue.find(second)
    assert (entry["regression_of"], entry["regression_note"]) == (first, "raised the time-out")
    queue.resolve(second, "and once more")
    for _ in range(2):
        queue.put(make())
    assert first not in {entry["id"] for entry in queue.entries()}
    queue.resolve(queue.entries()[-1]["id"], "room")
    assert queue.find(queue.put(make(**failure)).intervention_id)["regression_of"] == second


def test_what_was_merged_into_a_resolved_entry_comes_back_as_a_regression(queue, make) -> None:
    for _ in range(5):
        queue.put(make(session_id="one"))
    merged = queue.put(make(session_id="one", error_type="M", error_message="m")).intervention_id
    queue.resolve(merged, "all of it")
    back = queue.put(make(session_id="two", error_type="M", error_message="m")).intervention_id
    assert queue.find(back)["regression_of"] == merged


def test_a_question_that_is_asked_again_is_no_regression(queue, make) -> None:
    first = queue.put(make(type="escalation", error_message="which?")).intervention_id
    queue.resolve(first, "the blue one")
    again = queue.put(make(type="escalation", error_message="which?")).intervention_id
    assert again != first
    assert queue.find(again)["regression_of"] is None


def test_a_dismissed_failure_that_comes_back_is_no_regression(queue, make) -> None:
    first = queue.put(make(error_type="E", error_message="again")).intervention_id
    queue.dismiss(first, "noise")
    second = queue.put(make(error_type="E", error_message="again")).intervention_id
    assert queue.find(second)["regression_of"] is None


def test_whatever_the_admission_the_whole_failure_is_one_line_of_the_error_log(
    home: Path, make
) -> None:
    queue = InterventionQueue(home, max_size=6, max_per_session=2, max_per_error_type=3)
    requests = [
        *(make(session_id="one") for _ in range(3)),
        *(make(error_type="E") for _ in range(4)),
        *(make() for _ in range(3)),
    ]
    kinds = [str(queue.put(request).kind) for request in requests]
    assert set(kinds) == {"accepted", "merged", "counted", "dropped"}
    lines = log_lines(home)
    assert [line["admission"] for line in lines] == kinds
    assert [line["error_message"] for line in lines] == [r.error_message for r in requests]
    assert all(line["context"] == {} and line["session_id"] for line in lines)


def test_ids_are_unique_even_for_the_same_request(queue, make) -> None:
    request = make()
    ids = {queue.put(request).intervention_id for _ in range(5)}
    assert len(ids) == 5


def test_the_limits_must_make_sense(home: Path) -> None:
    with pytest.raises(ValueError, match="max_size"):
        InterventionQueue(home, max_size=0)


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, field in InterventionRequest.model_fields.items()
        if field.annotation in (str, str | None) and name not in ("id", "fingerprint")
    ),
)
def test_no_text_of_a_request_is_stored_unredacted_or_without_bound(
    queue: InterventionQueue, make, home: Path, name: str
) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwx0123456789"
    queue.put(make(**{name: f"{secret} " + "long " * 10_000}))
    stored = queue_file(home).read_text()
    assert secret not in stored
    assert len(stored) < 40_000
    logs = "".join(path.read_text() for path in (home / "logs").rglob("*.jsonl"))
    assert secret not in logs
