"""Error Handling Architecture, version 1.1 (2026-01-05), section by section.

Each test stands under the heading of the document whose promise it checks.
"""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from freezegun import freeze_time

from interventions import (
    AdmissionKind,
    InterventionQueue,
    InterventionRequest,
    check_queue_health,
    create_intervention_request,
    resolve_intervention,
)
from tests.answers import (
    APPROVE,
    COMPLETE,
    QUESTION,
    SEARCH,
    Turns,
    open_entries,
    scripted_flow,
    started_phases,
    verdict,
)
from unified_flow import errors
from unified_flow.config.tables import Limits
from unified_flow.engine.phase_table import BY_NAME, PHASES
from unified_flow.errors.classification import classify
from unified_flow.errors.safe_messages import MESSAGES
from unified_flow.phases import NAMES
from unified_flow.phases import errors as phase_errors
from unified_flow.turns.results import Verdict

REQUEST = httpx.Request("GET", "https://bestbuy.com/product/123")
FORBIDDEN = httpx.HTTPStatusError(
    "403 Forbidden", request=REQUEST, response=httpx.Response(403, request=REQUEST)
)


def request(**over: Any) -> InterventionRequest:
    given: dict[str, Any] = {
        "type": "error",
        "severity": "high",
        "phase": "coordinator",
        "error_type": "HTTPStatusError",
        "error_message": "403 Forbidden",
        "session_id": "s",
        "turn_id": 1,
    }
    return InterventionRequest(**(given | over))


def fail(home: Path, docs: Path, **over: Any) -> phase_errors.PhaseError:
    with pytest.raises(phase_errors.PhaseError) as raised:
        asyncio.run(scripted_flow(home, docs, **over).process("abc123", QUESTION))
    return raised.value


class TestPhilosophyFailFast:
    def test_the_failed_tool_stops_everything(self, home: Path, docs: Path) -> None:
        index = home / "shared_state" / "index" / "documents.sqlite3"
        index.parent.mkdir(parents=True)
        index.write_bytes(b"no index" * 1000)
        fail(home, docs)
        assert started_phases(home)[-1] == "coordinator"


def test_the_error_carries_the_turn_as_its_journal_has_it(home: Path, docs: Path) -> None:
    error = fail(home, docs, synthesis=RuntimeError("boom"))
    assert error.turn == Turns(home).require(error.turn_id)
    assert error.turn.failure is not None
    assert error.turn.failure.intervention_id == error.intervention_id


class TestCorePrincipleHumanIntervention:
    """1 logs the full context, 2 creates a request, 3 stops, 4 returns partial results."""

    def test_all_four(self, home: Path, docs: Path) -> None:
        error = fail(home, docs, synthesis=RuntimeError("boom"))
        (entry,) = open_entries(home)
        log = home / "logs/errors" / f"{datetime.now(UTC):%Y-%m-%d}.jsonl"
        (line,) = log.read_text().splitlines()
        logged = json.loads(line)
        for record in (entry, logged.get("failure", logged)):
            assert record["phase"] == "synthesis"
            assert record["error_message"] == "boom"
            assert "RuntimeError: boom" in record["traceback"]
        assert error.intervention_id == entry["id"]
        assert started_phases(home)[-1] == "synthesis"
        assert error.partial["coordinator"][0]["tool"] == "doc.search"

    def test_the_response_tells_the_user_that_a_developer_was_notified(
        self, home: Path, docs: Path
    ) -> None:
        flow = scripted_flow(home, docs, synthesis=RuntimeError("secret detail"))
        answer = asyncio.run(flow.process_request("abc123", QUESTION))
        assert answer["response"].startswith(
            "I encountered an error and need assistance. A developer has been notified."
        )
        assert "Error: " in answer["response"]
        assert "secret detail" not in answer["response"]


class TestErrorCategories:
    @pytest.mark.parametrize(
        ("exc", "stage", "category"),
        [
            (httpx.ReadTimeout("x"), "answer_pipeline", "tool_timeout"),
            (
                httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(500)),
                "answer_pipeline",
                "http_error",
            ),
            (json.JSONDecodeError("x", "", 0), "answer_pipeline", "parse_error"),
            (httpx.ConnectError("x"), "llm", "llm_error"),
            (errors.ToolNotFoundError("x"), "answer_pipeline", "config_error"),
            (errors.RecipeError("x"), "answer_pipeline", "config_error"),
            (PermissionError("x"), "answer_pipeline", "permission_error"),
            (ZeroDivisionError("x"), "answer_pipeline", "unknown_error"),
        ],
    )
    def test_category_a_all_halt(self, exc: Exception, stage: Any, category: str) -> None:
        assert classify(exc, stage).category == category

    def test_category_b_is_reserved(self, home: Path) -> None:
        with pytest.raises(errors.ConfigError):
            scripted_flow(home).from_config(home, policy="production")


class TestInterventionRequestSystem:
    def test_the_fields_of_the_request(self) -> None:
        named = {"id", "type", "severity", "phase", "tool", "error_type", "error_message"}
        named |= {"context", "session_id", "turn_id", "created_at", "resolved_at", "resolution"}
        assert named <= set(InterventionRequest.model_fields)
        made = request()
        assert (made.tool, made.resolved_at, made.resolution) == (None, None, None)

    def test_it_is_written_to_the_queue_and_to_the_log(self, home: Path) -> None:
        InterventionQueue(home).put(request())
        queue = json.loads((home / "shared_state/intervention_queue.json").read_text())
        assert len(queue["interventions"]) == 1
        assert (home / "logs/errors" / f"{datetime.now(UTC):%Y-%m-%d}.jsonl").exists()


class TestPhaseSpecificErrorHandling:
    SEVERITIES = {  # noqa: RUF012
        "query_analyzer": "critical",
        "reflection": "high",
        "context_gatherer": "high",
        "planner": "critical",
        "coordinator": "high",
        "synthesis": "high",
        "validation": "medium",
        "save": "medium",
    }
    ERRORS = {  # noqa: RUF012
        "query_analyzer": phase_errors.QueryAnalyzerError,
        "reflection": phase_errors.ReflectionError,
        "context_gatherer": phase_errors.ContextGathererError,
        "planner": phase_errors.PlannerError,
        "coordinator": phase_errors.CoordinatorError,
        "synthesis": phase_errors.SynthesisError,
        "validation": phase_errors.ValidationError,
        "save": phase_errors.SaveError,
    }

    def test_eight_phases_in_order(self) -> None:
        assert list(NAMES) == list(self.SEVERITIES)

    @pytest.mark.parametrize("phase", PHASES, ids=NAMES)
    def test_each_has_its_error_and_severity(self, phase: Any) -> None:
        assert self.SEVERITIES[phase.NAME] == phase.SEVERITY
        assert phase.ERROR is self.ERRORS[phase.NAME]

    @pytest.mark.parametrize(
        "phase", ["query_analyzer", "reflection", "planner", "synthesis", "validation"]
    )
    def test_each_raises_from_the_original(self, phase: str, home: Path, docs: Path) -> None:
        boom = RuntimeError("boom")
        error = fail(home, docs, **{phase: boom})
        assert type(error) is self.ERRORS[phase]
        assert error.__cause__ is boom
        assert started_phases(home)[-1] == phase
        (entry,) = open_entries(home)
        assert entry["context"]["query"] == QUESTION

    def test_phase_4_names_the_tool_and_its_arguments(self, home: Path, docs: Path) -> None:
        plan = SEARCH.model_copy(
            update={
                "tool_requests": [
                    SEARCH.tool_requests[0].model_copy(update={"args": {"query": ""}})
                ]
            }
        )
        error = fail(home, docs, planner=plan)
        assert "doc.search failed" in str(error)
        (entry,) = open_entries(home)
        assert (entry["tool"], entry["context"]["tool_args"]) == ("doc.search", {"query": ""})

    def test_phase_7_does_not_halt_the_response(self, home: Path, docs: Path) -> None:
        def take_the_place_of_the_store(call: object) -> Verdict:
            (home / "shared_state" / "sessions.sqlite3").mkdir()
            return APPROVE

        flow = scripted_flow(home, docs, validation=take_the_place_of_the_store)
        turn = asyncio.run(flow.process("abc123", QUESTION))
        assert (turn.status, turn.response) == ("answered", "A topic is a named bus.")
        assert turn.saved is False
        (entry,) = open_entries(home)
        assert (entry["phase"], entry["severity"]) == ("save", "medium")


class TestTopLevelErrorHandler:
    def test_a_phase_error_becomes_a_dict(self, home: Path, docs: Path) -> None:
        flow = scripted_flow(home, docs, planner=RuntimeError("x"))
        answer = asyncio.run(flow.process_request("abc123", QUESTION))
        assert answer["error"] is True
        assert (answer["error_type"], answer["phase"]) == ("PlannerError", "planner")
        assert answer["intervention_id"] == open_entries(home)[0]["id"]
        assert set(answer["partial"]) >= {"query_analyzer", "reflection"}

    def test_success_has_the_same_keys(self, home: Path, docs: Path) -> None:
        answer = asyncio.run(scripted_flow(home, docs).process_request("abc123", QUESTION))
        assert answer["error"] is False
        assert answer["response"] == "A topic is a named bus."
        wanted = ["response", "error", "error_type", "phase", "intervention_id"]
        assert list(answer) == [*wanted, "turn_id", "request_id"]

    def test_an_unexpected_error_is_critical_in_no_phase(self, home: Path, docs: Path) -> None:
        flow = scripted_flow(home, docs)
        (home / "shared_state").mkdir()
        (home / "shared_state" / "turns").write_text("a file where the turns should be")
        answer = asyncio.run(flow.process_request("abc123", QUESTION))
        assert answer["error"] is True
        assert MESSAGES["en"]["UNEXPECTED"] in answer["response"]
        (entry,) = open_entries(home)
        assert (entry["severity"], entry["phase"]) == ("critical", "unknown")


class TestInterventionQueue:
    def test_the_file(self, home: Path) -> None:
        with freeze_time("2026-01-04T10:30:00Z"):
            InterventionQueue(home).put(
                InterventionRequest.from_exception(
                    FORBIDDEN,
                    severity="critical",
                    phase="coordinator",
                    tool="internet.research",
                    session_id="session_abc",
                    turn_id=1234,
                    context={"url": "https://bestbuy.com/product/123"},
                )
            )
        (entry,) = open_entries(home)
        assert entry["id"].startswith("int_20260104_103000_")
        assert entry["created_at"].startswith("2026-01-04T10:30:00")
        expected = {
            "type": "error",
            "severity": "critical",
            "phase": "coordinator",
            "tool": "internet.research",
            "error_type": "HTTPStatusError",
            "error_message": "403 Forbidden",
            "session_id": "session_abc",
            "turn_id": 1234,
            "resolved_at": None,
            "resolution": None,
        }
        assert {key: entry[key] for key in expected} == expected
        assert entry["context"]["url"] == "https://bestbuy.com/product/123"


class TestResolutionWorkflow:
    def test_a_person_marks_it_resolved(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UNIFIED_FLOW_HOME", str(home))
        admission = InterventionQueue(home).put(request())
        assert admission.intervention_id is not None
        resolve_intervention(admission.intervention_id, "asked for a key")
        (entry,) = open_entries(home)
        assert entry["resolution"] == "asked for a key"
        assert entry["resolved_at"] is not None


class TestValidationLoopLimits:
    def test_the_limits(self) -> None:
        limits = Limits()
        assert (limits.planning_loop, limits.retry, limits.revise) == (5, 1, 2)
        assert limits.model_calls == 25

    @pytest.mark.parametrize(
        ("loop", "over"),
        [
            ("planning_loop", {"planner": SEARCH}),
            ("retry", {"planner": COMPLETE, "validation": verdict("RETRY")}),
            ("revise", {"validation": verdict("REVISE")}),
        ],
    )
    def test_at_the_limit(self, loop: str, over: Any, home: Path, docs: Path) -> None:
        error = fail(home, docs, **over)
        assert isinstance(error, phase_errors.LoopLimitError)
        (entry,) = open_entries(home)
        assert (entry["type"], entry["severity"]) == ("limit_exceeded", "high")
        assert entry["context"]["loop"] == loop
        assert entry["context"]["iterations"] == entry["context"]["limit"]


class TestLoggingStandards:
    def test_the_fields_of_an_error_record(
        self, home: Path, docs: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.ERROR, logger="unified_flow"):
            fail(home, docs, reflection=FORBIDDEN)
        (record,) = [r for r in caplog.records if r.name == "unified_flow"]
        assert record.getMessage() == "[reflection] HTTPStatusError"
        named = vars(record)
        assert named["component"] == "reflection"
        assert named["error_type"] == "HTTPStatusError"
        assert named["error_message"] == "403 Forbidden"
        assert named["session_id"] == "abc123"
        assert named["turn_id"] == 1
        assert named["operation"]
        # What the graceful-degradation ADR adds.
        assert (named["service"], named["status_code"]) == ("llm", 403)
        assert named["request_id"]
        assert "HTTPStatusError: 403 Forbidden" in named["traceback"]
        # As `logger.exception` says it: whoever handles the record has the exception itself.
        assert record.exc_info is not None
        assert record.exc_info[0] is httpx.HTTPStatusError


class TestQueueBackpressure:
    def test_50_in_all_then_dropped_to_the_emergency_log(self, home: Path) -> None:
        queue = InterventionQueue(home, max_per_error_type=1000)
        for number in range(50):
            assert queue.put(request(session_id=f"s{number}")).kind is AdmissionKind.ACCEPTED
        last = queue.put(request(session_id="one more", error_message="the last one"))
        assert (last.kind, last.intervention_id) == (AdmissionKind.DROPPED, None)
        emergency = home / "logs/errors" / f"emergency_{datetime.now(UTC):%Y-%m-%d}.jsonl"
        (line,) = emergency.read_text().splitlines()
        assert "the last one" in line

    def test_5_of_a_session_then_merged_into_the_same_type(self, home: Path) -> None:
        queue = InterventionQueue(home)
        ids = [queue.put(request(error_type=f"E{n}")).intervention_id for n in range(5)]
        assert len(set(ids)) == 5
        sixth = queue.put(request(error_type="E6"))
        assert sixth.kind is AdmissionKind.MERGED
        assert sixth.intervention_id == ids[-1]
        assert len(queue.entries()) == 5

    def test_10_of_an_error_type_then_counted(self, home: Path) -> None:
        queue = InterventionQueue(home)
        for number in range(10):
            queue.put(request(session_id=f"s{number}"))
        more = queue.put(request(session_id="another"))
        assert more.kind is AdmissionKind.COUNTED
        assert sum(entry["occurrences"] for entry in queue.entries()) == 11

    def test_the_document_s_function_is_false_only_when_dropped(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UNIFIED_FLOW_HOME", str(home))
        assert create_intervention_request(request()) is True
        monkeypatch.setenv("UNIFIED_FLOW_QUEUE__MAX_SIZE", "1")
        assert create_intervention_request(request(session_id="t")) is False

    @pytest.mark.parametrize(
        ("over", "priority"),
        [
            ({"severity": "critical"}, 1),
            ({"error_category": "llm_error"}, 1),
            ({"error_category": "retrieval_error"}, 1),
            ({"type": "captcha", "severity": "critical"}, 2),
            ({"type": "permission"}, 2),
            ({"type": "escalation"}, 2),
            ({"type": "schema_failure"}, 3),
            ({}, 3),
            ({"type": "limit_exceeded"}, 4),
            ({"phase": "validation"}, 4),
            ({"phase": "save"}, 4),
        ],
    )
    def test_priority_levels(self, over: dict[str, Any], priority: int) -> None:
        assert request(**over).priority == priority


class TestQueueHealthMonitoring:
    @pytest.mark.parametrize(
        ("unresolved", "health"),
        [(0, "healthy"), (9, "healthy"), (10, "warning"), (29, "warning"), (30, "critical")],
    )
    def test_the_figures(
        self, unresolved: int, health: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UNIFIED_FLOW_HOME", str(home))
        queue = InterventionQueue(home, max_per_error_type=1000)
        begun = datetime(2026, 1, 4, 10, 30, tzinfo=UTC)
        with freeze_time(begun) as clock:
            for number in range(unresolved):
                queue.put(request(session_id=f"s{number}", severity="medium"))
            clock.move_to(begun + timedelta(hours=2))
            figures = check_queue_health()
        assert figures["total"] == figures["unresolved"] == unresolved
        assert figures["by_priority"] == {"critical": 0, "high": 0, "medium": unresolved}
        assert figures["oldest_unresolved_age_hours"] == (2.0 if unresolved else 0.0)
        assert figures["queue_health"] == health


class TestRelatedDocuments:
    @pytest.mark.parametrize(
        "path",
        [
            "LLM-ROLES/llm-roles-reference.md",
            "main-system-patterns/phase0-query-analyzer.md",
            "main-system-patterns/phase1-reflection.md",
            "main-system-patterns/phase2-context-gathering.md",
            "main-system-patterns/phase3-planner.md",
            "main-system-patterns/phase4-coordinator.md",
            "main-system-patterns/phase5-synthesis.md",
            "main-system-patterns/phase6-validation.md",
            "main-system-patterns/phase7-save.md",
        ],
    )
    def test_the_page_is_there_and_names_its_phase(self, path: str) -> None:
        text = (Path(__file__).parents[2] / "architecture" / path).read_text()
        named = [name for name in BY_NAME if f"`{name}`" in text]
        assert named
