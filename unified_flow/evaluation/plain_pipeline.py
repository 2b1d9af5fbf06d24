"""The plain pipeline, to be compared with: the best four passages and one prompt."""

from __future__ import annotations

from asyncio import to_thread
from time import perf_counter

from pydantic import BaseModel, Field

from unified_flow.config.settings import EMBEDDED
from unified_flow.engine.failure_report import report_outside_a_phase
from unified_flow.engine.services import Services
from unified_flow.errors import ConfigError
from unified_flow.evaluation.answers import Cost, EvaluatedAnswer, Trouble, contained
from unified_flow.evaluation.cache import ReplyCache
from unified_flow.evaluation.datasets import DatasetQuestion
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.clock import elapsed_ms
from unified_flow.models import ModelCall
from unified_flow.models.reply import parse_reply
from unified_flow.turns.input_checks import new_request_id
from unified_flow.turns.results import Claim, ToolResult
from unified_flow.turns.sections import Sections

PASSAGES = 4
PHASE = "plain"
TOKENS = 400
TEMPERATURE = 0.0
PROMPT = """\
Answer the question from the documents only, in one short sentence that begins with the answer
itself. If they do not hold the answer, say so and set found to false."""


class PlainAnswer(BaseModel):
    response: str = Field(min_length=1)
    found: bool = Field(description="false if the documents do not hold the answer")


async def ask_plainly(
    flow: UnifiedFlow, question: DatasetQuestion, cache: ReplyCache | None
) -> EvaluatedAnswer:
    """The same documents and the same model as the flow's voice. A failure becomes an
    intervention outside any phase."""
    services = flow.services
    started = perf_counter()
    said, trouble = None, None
    passages: list[str] = []
    cost = Cost(visits=1, calls=1)
    try:
        sections, passages = await _sections(services, question.text)
        said, cost = await _said(services, question.text, sections)
    except ConfigError:
        raise
    except Exception as exc:  # noqa: BLE001 - no boundary stands around this; a person is told
        told = await to_thread(
            report_outside_a_phase, exc, "evaluation", new_request_id(), services
        )
        trouble = Trouble(
            error_type=type(exc).__name__,
            message=str(exc),
            intervention_id=told.intervention_id,
        )
    replies = cache.taken() if cache else []
    took = elapsed_ms(started) + sum(reply.duration_ms for reply in replies if reply.cached)
    cached = sum(reply.cached for reply in replies)
    return EvaluatedAnswer(
        id=question.id,
        question=question.text,
        answers=list(question.answers),
        unanswerable=question.unanswerable,
        status="failed" if said is None else "answered",
        response=said.response if said else "",
        abstained=said is not None and not said.found,
        retrieved=any(contained(text, question.answers) for text in passages),
        trouble=trouble,
        duration_ms=round(took, 3),
        phases={PHASE: cost.model_copy(update={"duration_ms": round(took, 3), "cached": cached})},
    )


def voice_of(services: Services) -> str:
    """The model that answers. Raises ConfigError for the embedded one, which takes no prompt."""
    name = services.models.name_of(services.recipe("synthesis").head) or EMBEDDED
    if name == EMBEDDED:
        raise ConfigError(
            "the plain pipeline needs a language model", hint="name one with --model NAME"
        )
    return name


async def _sections(services: Services, query: str) -> tuple[Sections, list[str]]:
    if services.documents is None:
        return Sections(), []
    passages = await to_thread(services.documents.search, query, PASSAGES)
    claims = [Claim(claim=p.text, confidence=p.score, source=p.source()) for p in passages]
    result = ToolResult(tool="doc.search", success=True, claims=claims)
    return Sections(coordinator=(result,)), [passage.text for passage in passages]


async def _said(services: Services, query: str, sections: Sections) -> tuple[PlainAnswer, Cost]:
    model = services.models.named(voice_of(services))
    reply = await model.complete(
        ModelCall(
            phase=PHASE,
            output=PlainAnswer,
            prompt=PROMPT,
            query=query,
            sections=sections,
            temperature=TEMPERATURE,
            max_tokens=TOKENS,
        )
    )
    cost = Cost(
        visits=1,
        calls=1,
        prompt_tokens=reply.prompt_tokens or 0,
        completion_tokens=reply.completion_tokens or 0,
    )
    return parse_reply(reply.text, PlainAnswer), cost
