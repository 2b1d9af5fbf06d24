"""What came of one question, as it is kept: raw, so that scores can be read off it anew."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from unified_flow.turns.results import Citation


class AnswerRecord(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cost(AnswerRecord):
    """Of one phase in one turn; `calls` are those of language models. A reply from the cache
    counts with the time that it once took."""

    visits: int = 0
    duration_ms: float = 0.0
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Trouble(AnswerRecord):
    """Why a question has no answer, and the intervention that says more."""

    error_type: str
    message: str
    phase: str | None = None
    intervention_id: str | None = None


class EvaluatedAnswer(AnswerRecord):
    """`supported`: for each citation, whether it supports its sentence. `retrieved` and
    `gold_cited`: whether a gold answer stands in a passage that was found, and in a quote."""

    id: str
    question: str
    answers: list[str]
    unanswerable: bool
    status: Literal["answered", "clarify", "failed"]
    response: str = ""
    abstained: bool = False
    citations: list[Citation] = []
    supported: list[bool] = []
    retrieved: bool = False
    gold_cited: bool = False
    trouble: Trouble | None = None
    turn_id: int | None = None
    request_id: str | None = None
    duration_ms: float = 0.0
    phases: dict[str, Cost] = {}
