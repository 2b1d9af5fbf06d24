"""AgentResponse: what became of an agent's part of a turn (data-model.md, 3).

The document's five agents are names for parts of the one flow. Each phase belongs to one of them:

- QueryRouterAgent: query_analyzer, reflection, planner (understanding and routing), and before
  them the check of what was asked
- QdrantRetrievalAgent: context_gatherer, coordinator (fetching, whatever the store is called)
- AnswerSynthesisAgent: synthesis, validation
- ErrorRecoveryAgent: no phase; it is the boundary, and its phases are those that failed
- RAGChatAgent: save, and the turn as a whole: it orchestrates the others
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, field_serializer, model_validator

from unified_flow.turns.wire import Wire
from unified_flow.turns.wire.failure import ErrorContext, ErrorType, PublicErrorContext
from unified_flow.turns.wire.query_result import SHORTEST_MS


class AgentName(StrEnum):
    RAG_CHAT_AGENT = "RAGChatAgent"
    QUERY_ROUTER = "QueryRouterAgent"
    QDRANT_RETRIEVAL = "QdrantRetrievalAgent"
    ANSWER_SYNTHESIS = "AnswerSynthesisAgent"
    ERROR_RECOVERY = "ErrorRecoveryAgent"


PHASES_OF: dict[AgentName, tuple[str, ...]] = {
    AgentName.QUERY_ROUTER: ("query_analyzer", "reflection", "planner"),
    AgentName.QDRANT_RETRIEVAL: ("context_gatherer", "coordinator"),
    AgentName.ANSWER_SYNTHESIS: ("synthesis", "validation"),
    AgentName.ERROR_RECOVERY: (),
    AgentName.RAG_CHAT_AGENT: ("save",),
}


class AgentResponse(Wire):
    """`error_details` is written without what only the log may hold."""

    success: bool
    agent_name: AgentName
    result_data: dict[str, Any] | None = Field(default=None, description="present on success")
    error_details: ErrorContext | None = Field(default=None, description="present on failure")
    execution_time_ms: float = Field(gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.success and self.error_details is None:
            raise ValueError("error_details required when success=false")
        if self.success and self.result_data is None:
            raise ValueError("result_data should be present when success=true")
        return self

    @field_serializer("error_details")
    def _public(self, value: ErrorContext | None) -> PublicErrorContext | None:
        return value.public if value is not None else None


def agent_responses(
    phases: Iterable[Mapping[str, Any]], error: ErrorContext | None = None, took_ms: float = 0.0
) -> list[AgentResponse]:
    """One for each agent that had a part, the orchestrator last.

    `phases` are those of `Turn.phases`; `error` is what the turn failed with, if it did: it belongs
    to the agent whose phase came to its end so, and to the whole. `took_ms` is the turn's time.
    """
    visits = [dict(visit) for visit in phases]
    # Whether it was the question that could not be accepted, before any phase.
    refused = error is not None and error.error_type is ErrorType.VALIDATION_ERROR
    total = max(took_ms, sum(v["duration_ms"] for v in visits))
    answers = []
    for agent, names in PHASES_OF.items():
        own = [visit for visit in visits if visit["name"] in names]
        took = sum(visit["duration_ms"] for visit in own)
        if agent is AgentName.RAG_CHAT_AGENT:
            answers.append(_response(agent, own, error, total))
        elif agent is AgentName.ERROR_RECOVERY:
            failed = [visit for visit in visits if visit["status"] == "failed"]
            answers.append(_response(agent, failed, None, 0.0))
        elif agent is AgentName.QUERY_ROUTER and refused:
            answers.append(_response(agent, own, error, took))
        elif own:
            fallen = own[-1]["status"] == "failed"
            answers.append(_response(agent, own, error if fallen else None, took))
    return answers


def _response(
    agent: AgentName, visits: list[dict[str, Any]], error: ErrorContext | None, took_ms: float
) -> AgentResponse:
    return AgentResponse(
        success=error is None,
        agent_name=agent,
        result_data={"stands_for": list(PHASES_OF[agent]), "phases": visits},
        error_details=error,
        execution_time_ms=max(took_ms, SHORTEST_MS),
    )
