"""data-model.md, entity by entity: every attribute, every validation rule, every example."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid1

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from tests.answers import DRAFT, scripted_flow
from unified_flow.errors.classification import ERROR_TYPES, TABLE, classify
from unified_flow.errors.safe_messages import MESSAGES, safe_message
from unified_flow.phases import NAMES
from unified_flow.turns.passage import Passage
from unified_flow.turns.wire.agents import PHASES_OF, AgentName, AgentResponse, agent_responses
from unified_flow.turns.wire.failure import ErrorContext, ErrorType, error_context
from unified_flow.turns.wire.message import Message
from unified_flow.turns.wire.query_result import QueryResult, RetrievedChunk, query_result

LOGGED = {"timestamp": "2025-12-20T10:30:00Z", "request_id": "req-123"}


def _example(model: type[BaseModel]) -> dict[str, Any]:
    return dict(model.model_json_schema()["example"])


def _context(**over: Any) -> ErrorContext:
    known = {
        "error_type": "database",
        "original_error": "QdrantException: Connection timeout after 5.0s",
        "user_safe_message": "The assistant is temporarily unavailable. Please try again later.",
        "retry_able": True,
        "log_details": LOGGED,
    }
    return ErrorContext.model_validate(known | over)


class TestMessage:
    def test_the_example_holds_and_comes_back_as_it_went_in(self) -> None:
        example = _example(Message)
        assert Message.model_validate(example).model_dump(mode="json") == example

    def test_what_is_not_given_is_made(self) -> None:
        message = Message(role="user", content="Hello?")
        assert message.id.version == 4
        assert message.timestamp.tzinfo is UTC
        assert message.sources is None

    @pytest.mark.parametrize("bad", [uuid1(), "not-a-uuid", "req-1", 7])
    def test_id_is_a_uuid_of_version_4(self, bad: object) -> None:
        with pytest.raises(ValidationError, match="id"):
            Message(id=bad, role="user", content="x")

    @pytest.mark.parametrize("role", ["system", "tool", "", None])
    def test_role_is_user_or_assistant(self, role: object) -> None:
        with pytest.raises(ValidationError, match="role"):
            Message(role=role, content="x")

    @pytest.mark.parametrize("content", ["", "  \n"])
    def test_content_is_not_empty_for_users_only(self, content: str) -> None:
        with pytest.raises(ValidationError, match="must not be empty"):
            Message(role="user", content=content)
        assert Message(role="assistant", content=content).content == content

    def test_content_has_at_most_10000_characters(self) -> None:
        assert Message(role="user", content="å" * 10_000)
        with pytest.raises(ValidationError, match="10000"):
            Message(role="user", content="å" * 10_001)

    @pytest.mark.parametrize("bad", ["yesterday", "20.12.2025", 1766226600, "1766226600"])
    def test_timestamp_is_iso_8601(self, bad: object) -> None:
        with pytest.raises(ValidationError, match="timestamp"):
            Message(role="user", content="x", timestamp=bad)

    def test_timestamp_is_written_in_utc(self) -> None:
        message = Message(role="user", content="x", timestamp="2025-12-20T11:30:00+01:00")
        assert message.model_dump(mode="json")["timestamp"] == "2025-12-20T10:30:00Z"
        naive = Message(role="user", content="x", timestamp=datetime(2025, 12, 20, 10))
        assert naive.timestamp == datetime(2025, 12, 20, 10, tzinfo=UTC)

    def test_sources_are_for_grounded_assistants_only(self) -> None:
        with pytest.raises(ValidationError, match="assistant"):
            Message(role="user", content="x", sources=["a/b"])
        with pytest.raises(ValidationError, match="grounded"):
            Message(role="assistant", content="x", sources=[])

    def test_it_is_immutable(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            Message(role="user", content="x").content = "y"

    def test_a_session_keeps_what_was_said_so(self, home: Path, docs: Path) -> None:
        """An answer may be longer than a Message: that is no reason to keep none of it."""
        long = DRAFT.model_copy(update={"response": "A topic is a named bus. " * 600})
        flow = scripted_flow(home, docs, synthesis=long)
        turn = asyncio.run(flow.process("s1", "What is a topic?"))
        assert (turn.saved, turn.response) == (True, long.response)
        with closing(sqlite3.connect(home / "shared_state" / "sessions.sqlite3")) as store:
            rows = store.execute(
                "SELECT role, content, sources, timestamp FROM messages"
            ).fetchall()
        (asked, *question), (told, answer, sources, at) = rows
        assert (asked, question[:2], told) == ("user", ["What is a topic?", None], "assistant")
        assert answer == long.response[:10_000]
        assert json.loads(sources) == ["docs/robots.md/Robots > Topics"]
        assert question[2] < at


class TestQueryResult:
    def test_the_example_holds_and_comes_back_as_it_went_in(self) -> None:
        example = _example(QueryResult)
        assert QueryResult.model_validate(example).model_dump(mode="json") == example

    def _with(self, **over: Any) -> QueryResult:
        return QueryResult.model_validate(_example(QueryResult) | over)

    @pytest.mark.parametrize("text", ["What is ROS2?", " what is ros2?", "what is ros2?\n"])
    def test_query_text_is_normalized(self, text: str) -> None:
        with pytest.raises(ValidationError, match="normalized"):
            self._with(query_text=text)

    def test_chunks_are_ordered_by_score(self) -> None:
        first = _example(QueryResult)["retrieved_chunks"][0]
        both = [first | {"score": 0.2}, first | {"score": 0.3}]
        with pytest.raises(ValidationError, match="ordered by score"):
            self._with(retrieved_chunks=both, total_results=2)
        assert self._with(retrieved_chunks=both[::-1], total_results=2)

    @pytest.mark.parametrize("score", [-0.01, 1.01, float("nan")])
    def test_score_is_between_0_and_1(self, score: float) -> None:
        chunk = _example(QueryResult)["retrieved_chunks"][0]
        with pytest.raises(ValidationError, match="score"):
            RetrievedChunk.model_validate(chunk | {"score": score})

    @pytest.mark.parametrize("field", ["chapter", "section"])
    def test_metadata_names_chapter_and_section(self, field: str) -> None:
        chunk = _example(QueryResult)["retrieved_chunks"][0]
        rest = {name: value for name, value in chunk["metadata"].items() if name != field}
        with pytest.raises(ValidationError, match=field):
            RetrievedChunk.model_validate(chunk | {"metadata": rest})

    def test_text_is_not_empty(self) -> None:
        chunk = _example(QueryResult)["retrieved_chunks"][0]
        with pytest.raises(ValidationError, match="text"):
            RetrievedChunk.model_validate(chunk | {"text": ""})

    @pytest.mark.parametrize("total", [0, 2])
    def test_total_results_equals_the_number_of_chunks(self, total: int) -> None:
        with pytest.raises(ValidationError, match="total_results must match"):
            self._with(total_results=total)

    @pytest.mark.parametrize("took", [float("inf"), 0, -1.5])
    def test_retrieval_time_is_positive(self, took: float) -> None:
        with pytest.raises(ValidationError, match="retrieval_time_ms"):
            self._with(retrieval_time_ms=took)

    def test_what_the_index_found_becomes_one(self) -> None:
        found = [
            Passage(chunk_id=c, path="docs/a.md", line=3, end_line=4, heading=h, text="t", score=s)
            for c, h, s in (("1", "A", 0.2), ("2", "A > B", 0.7))
        ]
        result = query_result("  What IS it? ", found, 0.0)
        assert result.query_text == "what is it?"
        assert [chunk.chunk_id for chunk in result.retrieved_chunks] == ["2", "1"]
        assert result.retrieved_chunks[0].metadata.chapter == "docs/a.md"
        assert result.retrieved_chunks[0].metadata.section == "A > B"
        assert result.retrieval_time_ms > 0


class TestAgentResponse:
    def test_the_five_names(self) -> None:
        assert [agent.value for agent in AgentName] == [
            "RAGChatAgent",
            "QueryRouterAgent",
            "QdrantRetrievalAgent",
            "AnswerSynthesisAgent",
            "ErrorRecoveryAgent",
        ]
        with pytest.raises(ValidationError, match="agent_name"):
            AgentResponse(success=True, agent_name="PoetAgent", result_data={}, execution_time_ms=1)

    def test_failure_needs_error_details(self) -> None:
        with pytest.raises(ValidationError, match="error_details required"):
            AgentResponse(success=False, agent_name="RAGChatAgent", execution_time_ms=1)

    def test_success_needs_result_data(self) -> None:
        with pytest.raises(ValidationError, match="result_data should be present"):
            AgentResponse(success=True, agent_name="RAGChatAgent", execution_time_ms=1)

    @pytest.mark.parametrize("took", [float("inf"), 0, -1])
    def test_execution_time_is_positive(self, took: float) -> None:
        with pytest.raises(ValidationError, match="execution_time_ms"):
            AgentResponse(
                success=True, agent_name="RAGChatAgent", result_data={}, execution_time_ms=took
            )

    def test_every_phase_belongs_to_exactly_one_agent(self) -> None:
        assert sorted(name for names in PHASES_OF.values() for name in names) == sorted(NAMES)
        assert set(PHASES_OF) == set(AgentName)

    def test_an_agent_whose_phase_failed_brings_the_error_and_recovery_answers(self) -> None:
        visits = [
            {"name": "query_analyzer", "visit": 1, "status": "completed", "duration_ms": 2.0},
            {"name": "synthesis", "visit": 1, "status": "failed", "duration_ms": 3.0},
        ]
        found = {each.agent_name: each for each in agent_responses(visits, _context())}
        assert list(found) == [agent for agent in PHASES_OF if agent in found]
        assert found[AgentName.QUERY_ROUTER].success
        assert not found[AgentName.ANSWER_SYNTHESIS].success
        assert not found[AgentName.RAG_CHAT_AGENT].success
        assert found[AgentName.ERROR_RECOVERY].success
        assert (found[AgentName.ERROR_RECOVERY].result_data or {})["phases"] == visits[1:]
        assert found[AgentName.RAG_CHAT_AGENT].execution_time_ms == 5.0

    def test_an_agent_whose_phase_came_right_at_another_try_has_not_failed(self) -> None:
        visits = [
            {"name": "synthesis", "visit": 1, "status": status, "duration_ms": 2.0}
            for status in ("failed", "completed")
        ]
        found = {each.agent_name: each for each in agent_responses(visits)}
        assert all(agent.success for agent in found.values())
        assert (found[AgentName.ERROR_RECOVERY].result_data or {})["phases"] == visits[:1]

    def test_a_question_that_cannot_be_accepted_is_the_router_s_to_refuse(self) -> None:
        found = {
            each.agent_name: each.success
            for each in agent_responses([], _context(error_type="validation", retry_able=False))
        }
        assert found == {
            AgentName.QUERY_ROUTER: False,
            AgentName.ERROR_RECOVERY: True,
            AgentName.RAG_CHAT_AGENT: False,
        }

    def test_what_only_the_log_may_hold_is_not_written(self) -> None:
        answer = AgentResponse(
            success=False,
            agent_name="RAGChatAgent",
            error_details=_context(),
            execution_time_ms=1,
        )
        assert set(answer.model_dump(mode="json")["error_details"]) == {
            "error_type",
            "user_safe_message",
            "retry_able",
        }


class TestErrorContext:
    def test_the_example_holds_and_comes_back_as_it_went_in(self) -> None:
        example = _example(ErrorContext)
        assert ErrorContext.model_validate(example).model_dump(mode="json") == example

    def test_the_six_types(self) -> None:
        assert {each.name: each.value for each in ErrorType} == {
            "NETWORK_ERROR": "network",
            "DATABASE_ERROR": "database",
            "LLM_ERROR": "llm",
            "VALIDATION_ERROR": "validation",
            "AGENT_ERROR": "agent",
            "UNKNOWN_ERROR": "unknown",
        }
        with pytest.raises(ValidationError, match="error_type"):
            _context(error_type="weather")

    def test_every_row_of_the_classification_is_one_of_them(self) -> None:
        assert {row.error_type for row in TABLE} <= {each.value for each in ErrorType}
        assert {(row.category, row.error_type) for row in TABLE} == set(ERROR_TYPES.items())

    @pytest.mark.parametrize(
        "text", ["Traceback (most recent call last)", 'File "x.py", line 3', "    at go (a.js:3:1)"]
    )
    def test_the_message_holds_no_stack_trace(self, text: str) -> None:
        with pytest.raises(ValidationError, match="stack traces"):
            _context(user_safe_message=text)

    @pytest.mark.parametrize(
        "text",
        ["key sk-proj-abcdefghijklmnopqrstuvwxyz123456 refused", "password=hunter2hunter2 refused"],
    )
    def test_the_message_holds_no_key(self, text: str) -> None:
        with pytest.raises(ValidationError, match="sensitive"):
            _context(user_safe_message=text)

    def test_the_message_holds_no_value_of_a_secret_variable(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STORE_PASSWORD", "correct-horse-7")
        with pytest.raises(ValidationError, match="sensitive"):
            _context(user_safe_message="login with correct-horse-7 failed")

    @pytest.mark.parametrize("text", ["see /srv/flow/shared_state/x", r"see C:\flow\logs"])
    def test_the_message_holds_no_path(self, text: str) -> None:
        with pytest.raises(ValidationError, match="paths"):
            _context(user_safe_message=text)

    def test_a_network_error_can_be_retried(self) -> None:
        with pytest.raises(ValidationError, match="retry_able"):
            _context(error_type="network", retry_able=False)
        meaning = classify(TimeoutError("slow"), "llm")
        made = error_context(TimeoutError("slow"), meaning, "Slow.", request_id="r")
        assert (made.error_type, made.retry_able) == (ErrorType.LLM_ERROR, True)

    @pytest.mark.parametrize(
        ("code", "retry_able"), [(401, False), (404, False), (429, True), (503, True)]
    )
    def test_a_wrong_key_or_a_model_that_is_not_there_cannot_be_retried(
        self, code: int, retry_able: bool
    ) -> None:
        request = httpx.Request("POST", "http://m/v1")
        error = httpx.HTTPStatusError("no", request=request, response=httpx.Response(code))
        made = error_context(error, classify(error, "llm"), "No.", request_id="r")
        assert made.retry_able is retry_able

    @pytest.mark.parametrize("missing", ["timestamp", "request_id"])
    def test_log_details_hold_timestamp_and_request_id(self, missing: str) -> None:
        rest = {name: value for name, value in LOGGED.items() if name != missing}
        with pytest.raises(ValidationError, match=missing):
            _context(log_details=rest)

    @pytest.mark.parametrize("empty", ["timestamp", "request_id"])
    def test_neither_is_empty(self, empty: str) -> None:
        with pytest.raises(ValidationError, match="empty"):
            _context(log_details=LOGGED | {empty: ""})

    def test_every_text_of_the_catalogue_is_safe(self) -> None:
        for language, texts in MESSAGES.items():
            for key, text in texts.items():
                assert _context(user_safe_message=text), key
            for told in (True, False):
                assert _context(
                    user_safe_message=safe_message("LLM_ERROR", notified=told, language=language)
                )
