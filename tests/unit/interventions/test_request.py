from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from interventions import InterventionQueue, InterventionRequest

NEEDED = {
    "type": "error",
    "severity": "high",
    "phase": "planner",
    "error_type": "KeyError",
    "error_message": "'x'",
    "session_id": "s",
    "turn_id": 7,
}


def test_seven_fields_are_enough_and_the_rest_is_filled_in(queue: InterventionQueue) -> None:
    entry = queue.find(queue.put(InterventionRequest(**NEEDED)).intervention_id or "")
    assert re.fullmatch(r"int_\d{8}_\d{6}_[0-9a-f]{6}", entry["id"])
    assert entry["created_at"].endswith("Z")
    assert entry["fingerprint"]
    assert (entry["occurrences"], entry["version"], entry["turn_id"]) == (1, 1, 7)
    assert entry["first_seen"] == entry["last_seen"] == entry["created_at"]
    assert entry["environment"]["python"]


@pytest.mark.parametrize("missing", sorted(NEEDED))
def test_each_of_the_seven_is_needed(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        InterventionRequest(**{k: v for k, v in NEEDED.items() if k != missing})


@pytest.mark.parametrize("field", ["created_at", "resolved_at", "snoozed_until", "first_seen"])
def test_a_naive_datetime_is_refused(field: str) -> None:
    with pytest.raises(ValidationError, match="timezone"):
        InterventionRequest(**NEEDED, **{field: datetime(2026, 1, 1)})


def test_times_are_written_in_utc(queue: InterventionQueue) -> None:
    noon_in_stockholm = datetime(2026, 1, 4, 12, 0, tzinfo=timezone(timedelta(hours=1)))
    queue.put(InterventionRequest(**NEEDED, created_at=noon_in_stockholm))
    (entry,) = queue.entries()
    assert entry["created_at"] == "2026-01-04T11:00:00Z"
    assert entry["id"].startswith("int_20260104_110000_")


def test_an_unknown_type_or_severity_is_refused() -> None:
    with pytest.raises(ValidationError):
        InterventionRequest(**{**NEEDED, "type": "oops"})
    with pytest.raises(ValidationError):
        InterventionRequest(**{**NEEDED, "severity": "low"})


def test_unknown_fields_of_a_newer_version_are_kept(queue: InterventionQueue) -> None:
    request = InterventionRequest(**NEEDED, from_the_future={"a": 1})
    queue.put(request)
    assert queue.entries()[0]["from_the_future"] == {"a": 1}
    beside = queue.get(queue.entries()[0]["id"]).model_extra
    assert beside == {"from_the_future": {"a": 1}, "superseded": None}


def test_it_comes_back_as_a_request(queue: InterventionQueue) -> None:
    admission = queue.put(InterventionRequest(**NEEDED, context={"a": [1, 2]}))
    again = queue.get(admission.intervention_id or "")
    assert isinstance(again, InterventionRequest)
    assert (again.turn_id, again.context, again.created_at.tzinfo) == (7, {"a": [1, 2]}, UTC)


@pytest.mark.parametrize(
    ("fields", "priority"),
    [
        ({"type": "captcha", "severity": "medium"}, 2),
        ({"type": "permission", "severity": "critical"}, 2),
        ({"type": "escalation"}, 2),
        ({"severity": "critical"}, 1),
        ({"error_category": "llm_error"}, 1),
        ({"error_category": "retrieval_error"}, 1),
        ({"type": "limit_exceeded"}, 4),
        ({"phase": "validation", "severity": "medium"}, 4),
        ({"phase": "save", "severity": "medium"}, 4),
        ({"severity": "critical", "phase": "save"}, 1),
        ({"type": "schema_failure"}, 3),
        ({}, 3),
    ],
)
def test_priority_is_the_first_match_and_never_stored(
    queue: InterventionQueue, fields: dict[str, str], priority: int
) -> None:
    request = InterventionRequest(**{**NEEDED, **fields})
    assert request.priority == priority
    queue.put(request)
    assert "priority" not in queue.entries()[0]


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def _cycle() -> dict[object, object]:
    loop: dict[object, object] = {}
    loop["self"] = loop
    return loop


@pytest.mark.parametrize(
    "context",
    [
        {"big": "x" * 10_000_000},
        _cycle(),
        {"bytes": b"\xff\x00"},
        {"nan": float("nan")},
        {1: "a", (2, 3): "b", None: "c"},
        {"hostile": Hostile()},
        {"surrogate": "\ud800", "null": "\x00"},
        {"deep": json.loads("[" * 500 + "]" * 500)},
    ],
    ids=["10 MB", "cycle", "bytes", "nan", "keys", "repr raises", "surrogate", "deep"],
)
def test_whatever_the_context_holds_becomes_a_clean_entry(
    queue: InterventionQueue, home, context: dict[object, object]
) -> None:
    assert queue.put(InterventionRequest(**NEEDED, context=context)).kind == "accepted"
    text = (home / "shared_state" / "intervention_queue.json").read_text(encoding="utf-8")
    assert len(text) < 80_000
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    (log,) = (home / "logs" / "errors").glob("2*.jsonl")
    assert json.loads(log.read_text(encoding="utf-8"))["admission"] == "accepted"


def test_a_message_with_lone_surrogates_is_put(queue: InterventionQueue) -> None:
    assert queue.put(InterventionRequest(**{**NEEDED, "error_message": "a\ud83d"}))
    assert queue.entries()[0]["error_message"] == "a?"


def test_everything_written_is_redacted(queue: InterventionQueue, home) -> None:
    secret = "sk-" + "ABCDEFGHIJKLMNOP1234"
    queue.put(
        InterventionRequest(
            **{**NEEDED, "error_message": f"401 for {secret}"},
            context={"headers": {"Authorization": "Token abc"}, "note": secret, secret: 1},
            traceback=f"key = '{secret}'",
            new_field={"password": "hunter2"},
        )
    )
    entry = queue.entries()[0]
    queue.resolve(entry["id"], f"rotated {secret}")
    for path in home.rglob("*.json*"):
        text = path.read_text()
        assert "ABCDEFGHIJKLMNOP" not in text, path
        assert "hunter2" not in text, path
