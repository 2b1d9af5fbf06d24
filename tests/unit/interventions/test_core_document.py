"""The queue part of error-handling-architecture.md, section by section."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from interventions import (
    InterventionQueue,
    InterventionRequest,
    check_queue_health,
    create_intervention_request,
    resolve_intervention,
)
from interventions.home import queue_file


def put(home: Path, **fields: Any) -> bool:
    """As the document's phases call it."""
    return create_intervention_request(**{"type": "error", "severity": "high", **fields}, home=home)


class TestInterventionRequestSystem:
    def test_written_to_the_queue_and_logged(self, home: Path) -> None:
        assert put(home, phase="reflection", error_type="KeyError", error_message="x")
        (entry,) = json.loads(queue_file(home).read_text())["interventions"]
        (log,) = (home / "logs" / "errors").glob("20??-??-??.jsonl")
        assert json.loads(log.read_text())["id"] == entry["id"]

    @pytest.mark.parametrize(
        "fields",
        [
            {"severity": "critical", "phase": "query_analyzer", "context": {"query": "q"}},
            {"severity": "high", "phase": "reflection"},
            {"severity": "high", "phase": "context_gatherer", "context": {"query": "q"}},
            {"severity": "critical", "phase": "planner"},
            {"severity": "high", "phase": "coordinator", "tool": "t", "context": {"tool_args": {}}},
            {"severity": "high", "phase": "synthesis"},
            {"severity": "medium", "phase": "validation"},
            {"severity": "medium", "phase": "save"},
            {"severity": "critical", "phase": "unknown"},
        ],
        ids=lambda fields: fields["phase"],
    )
    def test_each_call_of_the_document(self, home: Path, fields: dict[str, Any]) -> None:
        def fail() -> None:
            raise LookupError("what broke")

        try:
            fail()
        except LookupError as error:
            put(home, error_type=type(error).__name__, error_message=str(error), **fields)
        (entry,) = InterventionQueue(home).entries()
        assert {name: entry[name] for name in fields} == fields
        assert "in TestInterventionRequestSystem" in entry["traceback"]

    def test_the_call_of_the_loop_limits(self, home: Path) -> None:
        context = {"iterations": 5, "limit": 5}
        put(home, type="limit_exceeded", phase="planning_loop", context=context)
        (entry,) = InterventionQueue(home).entries()
        assert (entry["type"], entry["context"]) == ("limit_exceeded", context)


class TestResolutionWorkflow:
    def test_marked_resolved_with_notes(self, home: Path, caplog: pytest.LogCaptureFixture) -> None:
        put(home, phase="planner", error_type="E", error_message="x")
        queue = InterventionQueue(home)
        name = queue.entries()[0]["id"]
        with caplog.at_level(logging.INFO, logger="interventions"):
            resolve_intervention(name, "restarted the model", home=home)
        entry = queue.entries()[0]
        assert entry["resolved_at"]
        assert entry["resolution"] == "restarted the model"
        assert f"Intervention {name} resolved: restarted the model" in caplog.messages


class TestBackpressure:
    """Queue limits 50, 5 and 10, in the order of the document's code."""

    def test_fifty(self, home: Path, caplog: pytest.LogCaptureFixture) -> None:
        for number in range(50):
            session, error = f"s{number}", f"E{number}"
            assert put(home, phase="p", error_type=error, error_message="x", session_id=session)
        caplog.clear()
        assert not put(home, phase="p", error_type="E", error_message="x", session_id="s")
        assert "INTERVENTION QUEUE FULL (50). Dropping: error" in caplog.messages
        (log,) = (home / "logs" / "errors").glob("emergency_20??-??-??.jsonl")
        assert json.loads(log.read_text())["error_type"] == "E"

    def test_five_of_a_session(self, home: Path, caplog: pytest.LogCaptureFixture) -> None:
        for number in range(6):
            assert put(home, phase="p", error_type=f"E{number}", error_message="x", session_id="a")
        assert "Session a hit intervention limit (5)" in caplog.messages
        assert len(InterventionQueue(home).entries()) == 5

    def test_ten_of_an_error_type(self, home: Path, caplog: pytest.LogCaptureFixture) -> None:
        for number in range(11):
            assert put(home, phase="p", error_type="E", error_message="x", session_id=f"s{number}")
        assert "Error type E hit limit (10)" in caplog.messages
        entries = InterventionQueue(home).entries()
        assert sum(entry["occurrences"] for entry in entries) == 11
        assert len(entries) == 10

    def test_resolved_ones_do_not_count(self, home: Path) -> None:
        queue = InterventionQueue(home)
        for _ in range(12):
            put(home, phase="p", error_type="E", error_message="x", session_id="a")
            queue.resolve(queue.entries()[-1]["id"], "done")
        assert check_queue_health(home)["accepted"] == 12


class TestHealth:
    def test_the_documents_keys_and_empty_values(self, home: Path) -> None:
        health = check_queue_health(home)
        assert {name: health[name] for name in list(health)[:5]} == {
            "total": 0,
            "unresolved": 0,
            "by_priority": {"critical": 0, "high": 0, "medium": 0},
            "oldest_unresolved_age_hours": 0,
            "queue_health": "healthy",
        }


class TestLoggingStandards:
    def test_the_extra_fields_of_a_record(
        self, home: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, logger="interventions"):
            InterventionQueue(home).put(
                InterventionRequest(
                    type="error",
                    severity="high",
                    phase="planner",
                    error_type="KeyError",
                    error_message="password=hunter2",
                    session_id="s",
                    turn_id=3,
                )
            )
        (record,) = caplog.records
        fields = vars(record)
        assert fields["component"] == "planner"
        assert fields["error_type"] == "KeyError"
        assert "hunter2" not in fields["error_message"]
        assert (fields["session_id"], fields["turn_id"]) == ("s", 3)
        assert fields["service"] == "interventions"
        assert fields["operation"]
