"""The body of an answered question (graceful-degradation-adr.md, "Error Response Format")."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api.sources import Source, number_retrieved, sources_of
from unified_flow.api.trace import Trace, trace_of
from unified_flow.errors.safe_messages import MESSAGES, Language
from unified_flow.turns.passage import public_text
from unified_flow.turns.turn import Turn


class Metadata(BaseModel):
    model_config = ConfigDict(frozen=True)

    confidence_score: float = Field(ge=0.0, le=1.0, description="of the verdict; 0 if nothing was")
    num_sources_retrieved: int = Field(ge=0, description="passages found, cited or not")
    status: Literal["answered", "clarify", "silent"] = Field(
        description="clarify: it is a question back; silent: nothing is to be said"
    )
    abstained: bool = Field(description="true if the sources hold no answer")
    degraded: bool = Field(
        description="true if something failed and this is what is left, or what another model says"
    )
    saved: bool = Field(description="whether the session remembers it")
    turn_id: int
    session_id: str | None = Field(description="the one that was sent")
    policy: str
    duration_ms: float


class Answer(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra={
            "example": {
                "answer": "A topic is a named bus over which nodes exchange messages.",
                "sources": [
                    {
                        "chapter_id": "docs/robots.md",
                        "section_title": "Robots > Topics",
                        "excerpt": "A topic is a named bus over which nodes exchange messages.",
                        "relevance_score": 0.89,
                    }
                ],
                "metadata": {
                    "confidence_score": 0.92,
                    "num_sources_retrieved": 3,
                    "status": "answered",
                    "abstained": False,
                    "degraded": False,
                    "saved": True,
                    "turn_id": 12,
                    "session_id": "s1",
                    "policy": "fail_fast",
                    "duration_ms": 41.5,
                },
                "request_id": "2025-11-16-abc123",
                "should_respond": True,
                # null unless asked for; FastAPI leaves nulls out of the description
                "trace": {"messages": [], "agents": [], "retrievals": []},
            }
        },
    )

    answer: str
    sources: list[Source]
    metadata: Metadata
    request_id: str
    should_respond: bool = Field(
        default=True, description="false: say nothing (the policy `silent`, a guardrail)"
    )
    trace: Trace | None = Field(default=None, description="if the request asked for it")


def answer_of(
    turn: Turn, session_id: str | None, language: Language, *, traced: bool = False
) -> Answer:
    """What a client is told of a turn that came to its end; everything redacted.

    Of one that is to be silent nothing, and least of all why.
    """
    heard = turn.should_respond
    sources = sources_of(turn) if heard else []
    found = number_retrieved(turn) if heard else 0
    text = public_text(turn.response or "")
    if heard and turn.policy == "graceful" and turn.abstained and not sources:
        text = MESSAGES[language]["graceful_nothing"]
    verdict = turn.sections.validation
    sure = turn.status == "answered" and not turn.abstained and verdict is not None
    return Answer(
        answer=text,
        sources=sources,
        metadata=Metadata(
            confidence_score=verdict.confidence if sure and verdict is not None else 0.0,
            num_sources_retrieved=found,
            status=_status(turn),
            abstained=turn.abstained and heard,
            degraded=(turn.failure is not None or turn.failed_over) and heard,
            saved=turn.saved,
            turn_id=turn.turn_id,
            session_id=session_id,
            policy=turn.policy,
            duration_ms=turn.duration_ms if heard else 0.0,
        ),
        request_id=turn.request_id,
        should_respond=heard,
        trace=trace_of(turn, text, language) if traced and heard else None,
    )


def nothing(request_id: str, session_id: str | None, policy: str) -> Answer:
    """The same silence where no turn could be begun, or none came to its end."""
    return Answer(
        answer="",
        sources=[],
        metadata=Metadata(
            confidence_score=0.0,
            num_sources_retrieved=0,
            status="silent",
            abstained=False,
            degraded=False,
            saved=False,
            turn_id=0,
            session_id=session_id,
            policy=policy,
            duration_ms=0.0,
        ),
        request_id=request_id,
        should_respond=False,
    )


def _status(turn: Turn) -> Literal["answered", "clarify", "silent"]:
    if not turn.should_respond:
        return "silent"
    return "clarify" if turn.status == "clarify" else "answered"
