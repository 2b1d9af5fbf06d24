"""AgentResponse: what became of an agent's part of a turn (data-model.md, 3).

The document's five agents are names for parts of the one flow. Each phase belongs to one of them:

- QueryRouterAgent: query_analyzer, reflection, planner (understanding and routing)
- QdrantRetrievalAgent: context_gatherer, coordinator (fetching, whatever the store is called)
- AnswerSynthesisAgent: synthesis, validation
- RAGChatAgent: save, and the turn as a whole: it orchestrates the others
- ErrorRecoveryAgent: no phase; it is the boundary, and answers only where something failed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_serializer, model_validator

from unified_flow.wire.failure import ErrorContext, PublicErrorContext
from unified_flow.wire.retrieved import SHORTEST_MS


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


class AgentResponse(BaseModel):
    """`error_details` is written without what only the log may hold."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_serialization_defaults_required=True
    )

    success: bool
    agent_name: AgentName
    result_data: dict[str, Any] | None = Field(default=None, description="present on success")
    error_details: ErrorContext | None = Field(default=None, description="present on failure")
    execution_time_ms: float = Field(gt=0)

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
    """One for each agent that did something, the orchestrator last.

    `phases` are those of `Turn.phases`; `error` is that of the phase which failed, and `took_ms`
    the turn's whole time.
    """
    visits = [dict(visit) for visit in phases]
    total = max(took_ms, sum(v["duration_ms"] for v in visits), SHORTEST_MS)
    answers = []
    for agent, names in PHASES_OF.items():
        own = [visit for visit in visits if visit["name"] in names]
        failed = error if any(visit["status"] == "failed" for visit in own) else None
        if agent is AgentName.RAG_CHAT_AGENT:
            answers.append(_response(agent, names, own, error, total))
        elif agent is AgentName.ERROR_RECOVERY and error is not None:
            answers.append(_response(agent, names, [], None, SHORTEST_MS))
        elif own:
            took = sum(visit["duration_ms"] for visit in own)
            answers.append(_response(agent, names, own, failed, took))
    return answers


def _response(
    agent: AgentName,
    names: tuple[str, ...],
    visits: list[dict[str, Any]],
    error: ErrorContext | None,
    took_ms: float,
) -> AgentResponse:
    return AgentResponse(
        success=error is None,
        agent_name=agent,
        result_data={"stands_for": list(names), "phases": visits},
        error_details=error,
        execution_time_ms=max(took_ms, SHORTEST_MS),
    )
