"""The body of an answered question, redacted for who asked (the ADR's "Error Response Format")."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from interventions.secrets.redaction import redact_for_asker
from unified_flow.api.trace import Trace, trace_of
from unified_flow.errors.safe_messages import MESSAGES, Language
from unified_flow.turns.passage import Passage, path_of
from unified_flow.turns.results import Checks
from unified_flow.turns.sources import searches
from unified_flow.turns.turn import Turn

DESCRIPTIONS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("descriptions.toml").read_text(encoding="utf-8")
)
PIECE_CHARS = 40
_PIECES = re.compile(rf".{{1,{PIECE_CHARS}}}\s|\S{{1,{PIECE_CHARS}}}\s?|\s", re.DOTALL)


class Source(BaseModel):
    model_config = ConfigDict(frozen=True)

    chapter_id: str = Field(description="the file")
    section_title: str = Field(description="the headings above the text, joined by ' > '")
    excerpt: str
    relevance_score: float = Field(ge=0.0, le=1.0)


class Metadata(BaseModel):
    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)

    confidence_score: float = Field(
        default=0.0, ge=0.0, le=1.0, description="of the verdict; 0 without an answer"
    )
    checks: Checks | None = Field(
        default=None,
        description="what the verdict on the answer checked: true, false or `not checked`",
    )
    num_sources_retrieved: int = Field(default=0, ge=0, description="passages found, cited or not")
    status: Literal["answered", "clarify", "silent"] = Field(
        description="clarify: a question back; silent: show nothing"
    )
    abstained: bool = Field(default=False, description="true if the sources hold no answer")
    degraded: bool = Field(
        default=False,
        description="true if something failed: this is what is left, or a second model's answer",
    )
    saved: bool = Field(description="whether the session remembers it")
    turn_id: int
    session_id: str | None = Field(description="the one that was sent")
    policy: str
    duration_ms: float = 0.0


class Answer(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra={"example": DESCRIPTIONS["answer"]},
    )

    answer: str
    sources: list[Source]
    metadata: Metadata
    request_id: str
    should_respond: bool = Field(
        default=True, description="false: show nothing (the policy `silent`, a guardrail)"
    )
    trace: Trace | None = Field(default=None, description="if requested")


def answer_of(
    turn: Turn, session_id: str | None, language: Language, *, traced: bool = False
) -> Answer:
    """What the caller gets of a turn that ended; of a silent one nothing, least of all why."""
    if not turn.should_respond:
        return silent_answer(
            turn.request_id, session_id, turn.policy, turn_id=turn.turn_id, saved=turn.saved
        )
    passages = [passage for _, found, _ in searches(turn) for passage in found]
    sources = [
        Source(
            chapter_id=path_of(citation.source),
            section_title=citation.heading,
            excerpt=redact_for_asker(citation.passage or citation.quote),
            relevance_score=citation.score,
        )
        for citation in turn.citations
    ]
    text = redact_for_asker(turn.response or "")
    if turn.policy == "graceful" and turn.abstained and not sources:
        text = MESSAGES[language]["graceful_nothing"]
    verdict = turn.sections.validation
    judged = turn.status == "answered" and not turn.abstained
    return Answer(
        answer=text,
        sources=sources,
        metadata=Metadata(
            confidence_score=verdict.confidence if judged and verdict is not None else 0.0,
            checks=verdict.checks if judged and verdict is not None else None,
            num_sources_retrieved=len({passage.chunk_id for passage in passages}),
            status="clarify" if turn.status == "clarify" else "answered",
            abstained=turn.abstained,
            degraded=turn.failure is not None or turn.failed_over,
            saved=turn.saved,
            turn_id=turn.turn_id,
            session_id=session_id,
            policy=turn.policy,
            duration_ms=turn.duration_ms,
        ),
        request_id=turn.request_id,
        trace=trace_of(turn, text, language) if traced else None,
    )


def silent_answer(
    request_id: str, session_id: str | None, policy: str, *, turn_id: int = 0, saved: bool = False
) -> Answer:
    """The answer that says nothing; without a `turn_id` also where no turn began or ended."""
    return Answer(
        answer="",
        sources=[],
        metadata=Metadata(
            status="silent", saved=saved, turn_id=turn_id, session_id=session_id, policy=policy
        ),
        request_id=request_id,
        should_respond=False,
    )


def source_of_passage(passage: Passage) -> Source:
    return Source(
        chapter_id=passage.path,
        section_title=passage.heading,
        excerpt=redact_for_asker(passage.text),
        relevance_score=passage.score,
    )


def pieces(text: str) -> Iterator[str]:
    """The text in parts that end between words, for a stream; together they are the text."""
    return (found[0] for found in _PIECES.finditer(text))
