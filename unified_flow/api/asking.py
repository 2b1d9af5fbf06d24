"""One question, asked over HTTP: the turn, or the problem that the client is told."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from unified_flow.api.answers import Answer, answer_of, nothing
from unified_flow.api.facts import Facts
from unified_flow.api.metrics import Metrics
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.problem import Problem
from unified_flow.api.problems.rendering import ProblemError, note
from unified_flow.api.ratelimit import Rate
from unified_flow.api.running import unless_cancelled
from unified_flow.api.sources import Source, source_of_passage
from unified_flow.api.trace import Followed, with_trace
from unified_flow.engine.failure_report import report_unhandled
from unified_flow.engine.outcome import Outcome, outcome_of
from unified_flow.engine.services import Services
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.events import ModelCalled, Observed
from unified_flow.turns.results import PriorTurn

ASKED_BY_CLIENT = ("query", "session_id", "user_id", "channel", "request_id")


@dataclass(frozen=True)
class Question:
    """As the client sent it. Without a `session_id` nothing is kept of it (NO PERSISTENCE), and
    `history` is what the client says was said before."""

    text: str
    session_id: str | None = None
    user_id: str = "default"
    channel: str | None = None
    history: tuple[PriorTurn, ...] = ()


@dataclass
class Usage:
    """Tokens of the turn's model calls; an observer."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __call__(self, event: Observed) -> None:
        if isinstance(event, ModelCalled):
            self.prompt_tokens += event.prompt_tokens or 0
            self.completion_tokens += event.completion_tokens or 0


async def ask(
    flow: UnifiedFlow,
    question: Question,
    facts: Facts,
    metrics: Metrics,
    observer: Callable[[Observed], None] | None = None,
    *,
    traced: bool = False,
) -> Answer:
    """Raises ProblemError for whatever keeps the client from an answer."""
    followed = Followed()

    def follow(event: Observed) -> None:
        metrics.observe(event)
        if traced:
            followed(event)
        if observer is not None:
            observer(event)

    try:
        work = flow.process(
            question.session_id or f"http_{secrets.token_hex(6)}",
            question.text,
            user_id=question.user_id,
            channel=question.channel,
            request_id=facts.request_id,
            observer=follow,
            persist=question.session_id is not None,
            history=question.history if question.session_id is None else None,
            log=facts.keep,
        )
        turn = await unless_cancelled(work)
        answer = answer_of(turn, question.session_id, facts.language, traced=traced)
    except Exception as exc:
        services = flow.services
        outcome = outcome_of(exc, services.policy, chosen=ASKED_BY_CLIENT)
        asked_in = question.session_id or "http"
        intervention_id = await report_unhandled(exc, outcome, asked_in, facts.request_id, services)
        problem = _problem_of(exc, outcome, intervention_id, services)
        if outcome.silenced:
            note(problem, facts)
            return nothing(facts.request_id, question.session_id, services.policy.name)
        if traced:
            problem = with_trace(problem, followed.turn, exc, facts.language)
        raise ProblemError(problem) from exc
    facts.degraded = answer.metadata.degraded
    return answer


def _problem_of(
    error: Exception, outcome: Outcome, intervention_id: str | None, services: Services
) -> Problem:
    return problems.of_error(
        error,
        outcome,
        intervention_id,
        collection=services.settings.collection,
        rate=Rate.parse(services.settings.serve.rate_limit),
        sources=[source.model_dump(mode="json") for source in _sources(error)],
    )


def _sources(error: Exception) -> list[Source]:
    found = error.retrieved if isinstance(error, PhaseError) else []
    return [source_of_passage(passage) for passage in found]
