"""What each phase produces: the JSON schemas of the model's answers (system.md, the eight phases).

All are immutable. Scores and confidences lie in 0..1; durations are milliseconds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from unified_flow.turns.passage import Passage, passages_in

Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ReferenceResolution(Result):
    status: Literal["not_needed", "resolved", "failed"]
    original_references: list[str] = []
    resolved_to: str | None = None


class QueryAnalysis(Result):
    resolved_query: str = Field(min_length=1)
    reference_resolution: ReferenceResolution
    query_type: Literal["specific_content", "general_question", "followup", "new_topic"]
    content_reference: str | None = None
    reasoning: str = ""
    # Words of earlier turns and what each weighs in a search beside a word of the question. Phase
    # 0 finds them by rules, whichever model it asks.
    conversation: SkipJsonSchema[dict[str, float]] = {}


class Reflection(Result):
    decision: Literal["PROCEED", "CLARIFY"]
    confidence: Unit
    reasoning: str = ""
    clarification_question: str | None = None

    @model_validator(mode="after")
    def _clarify_asks(self) -> Self:
        if self.decision == "CLARIFY" and not (self.clarification_question or "").strip():
            raise ValueError("CLARIFY needs a clarification_question")
        return self


class PriorTurn(Result):
    turn_id: int
    question: str
    answer: str
    score: Unit = 1.0


class Memory(Result):
    id: str
    text: str
    score: Unit = 1.0


class GatheredContext(Result):
    prior_turns: list[PriorTurn] = []
    memories: list[Memory] = []
    preferences: dict[str, str] = {}
    source_references: list[str] = []
    reasoning: str = ""


class Goal(Result):
    id: str
    description: str
    status: Literal["pending", "done", "failed"] = "pending"
    dependencies: list[str] = []


class ToolRequest(Result):
    tool: str
    args: dict[str, Any] = {}
    goal_id: str = ""


class ToolChoice(Result):
    """What a small model says in the planner's place; no `tool` if none of them helps."""

    tool: str | None = None
    args: dict[str, Any] = {}


class Plan(Result):
    decision: Literal["EXECUTE", "COMPLETE"]
    route: Literal["coordinator", "synthesis", "clarify"]
    goals: list[Goal] = []
    tool_requests: list[ToolRequest] = []
    reasoning: str = ""
    clarification_question: str | None = None

    @model_validator(mode="after")
    def _route_is_possible(self) -> Self:
        if self.decision == "EXECUTE" and not self.tool_requests:
            raise ValueError("EXECUTE needs at least one tool request")
        if (self.decision == "EXECUTE") != (self.route == "coordinator"):
            raise ValueError(f"{self.decision} cannot go to {self.route}")
        if self.route == "clarify" and not (self.clarification_question or "").strip():
            raise ValueError("the route clarify needs a clarification_question")
        return self


class Claim(Result):
    claim: str
    confidence: Unit
    source: str


class ToolResult(Result):
    tool: str
    goal_id: str = ""
    success: bool
    result: Any = None
    claims: list[Claim] = []
    duration_ms: float = 0.0

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """Those in its result, parsed once. A copy keeps them: none may have another result."""
        return tuple(passages_in(self.result))


class Citation(Result):
    """What an answer rests on.

    `quote` is the decisive sentence, verbatim; `passage` the contiguous text that it stands in,
    `heading` the headings above it joined by " > ": both are "" for what is no document. `source`
    is where the quote begins, `path:line`; `score` is what the search gave the passage.
    """

    source: str
    quote: str
    passage: str = ""
    heading: str = ""
    score: Unit = 0.0


class Draft(Result):
    # A language model is asked for two fields alone: it cites by the numbers of passages at the end
    # of its sentences, and code makes citations of them (grounding/citations.py). It decides first
    # whether there is an answer, since what it has written it tends to defend.
    abstained: bool = Field(default=False, description="true if no source states the answer")
    response: str = Field(min_length=1)
    citations: SkipJsonSchema[list[Citation]] = []
    checklist: SkipJsonSchema[dict[str, bool]] = {}


Check = Annotated[
    bool | Literal["not checked"], WithJsonSchema({"type": "boolean"}, mode="validation")
]
"""What a check can know. A language model is asked for true or false alone."""


class Checks(Result):
    claims_supported: Check
    no_hallucinations: Check
    query_addressed: Check
    coherent_format: Check


class Verdict(Result):
    decision: Literal["APPROVE", "REVISE", "RETRY", "FAIL"]
    confidence: Unit
    checks: Checks
    issues: list[str] = []
    hints: list[str] = []


class Saved(Result):
    """What phase 7 kept, and where."""

    message_ids: list[str] = []
    store: str = ""
