"""A client's turns: one that a question begins, and one that goes on after a failure."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from interventions.errors import NotFoundError
from unified_flow.api import problems
from unified_flow.api.answer import Answer, answer_of, silent_answer, source_of_passage
from unified_flow.api.dependencies import AppState
from unified_flow.api.http_exchange import HttpExchange
from unified_flow.api.problems import ProblemError
from unified_flow.api.trace import with_trace
from unified_flow.engine.failure_report import report_unhandled
from unified_flow.engine.outcome import outcome_of
from unified_flow.engine.telemetry.query_log import LogRequest
from unified_flow.errors import ConfigError, InputError, RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.lookup import flow_for, load_turn
from unified_flow.resume.resumption import ResumeResult, resume_turn
from unified_flow.turns.ledger import Observer
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn

CLIENT_FIELDS = ("query", "session_id", "user_id", "channel", "request_id")


@dataclass(frozen=True)
class Question:
    """Without a `session_id` nothing of it is stored (NO PERSISTENCE), and `history` is the
    conversation as the client sent it."""

    text: str
    session_id: str | None = None
    user_id: str = "default"
    channel: str | None = None
    history: tuple[PriorTurn, ...] = ()


async def ask(
    state: AppState,
    question: Question,
    exchange: HttpExchange,
    observer: Observer | None = None,
    *,
    traced: bool = False,
) -> Answer:
    """Raises ProblemError for whatever keeps the client from an answer."""
    named, own = question.session_id, state.services.settings.serve.own_session_ids
    if own and named is not None and not state.session_ids.knows(named):
        raise ProblemError(problems.invalid("field_wrong", field_name="session_id"))
    try:
        with state.progress.of_turn(state.metrics.observe, observer) as watch:
            turn = await state.flow.process(
                question.session_id or f"http_{secrets.token_hex(6)}",
                question.text,
                user_id=question.user_id,
                channel=question.channel,
                request_id=exchange.request_id,
                repeatable=exchange.repeatable,
                observer=watch,
                persist=question.session_id is not None,
                history=question.history if question.session_id is None else None,
                log=exchange.set_turn_line,
            )
        answer = answer_of(turn, question.session_id, exchange.language, traced=traced)
    except Exception as exc:
        services = state.services
        outcome = outcome_of(exc, services.policy, chosen=CLIENT_FIELDS)
        intervention_id = await report_unhandled(
            exc, outcome, question.session_id or "http", exchange.request_id, services
        )
        turn, sources = Turn(request_id=exchange.request_id), list[dict[str, Any]]()
        if isinstance(exc, PhaseError):
            turn = exc.turn
            sources = [source_of_passage(each).model_dump(mode="json") for each in exc.retrieved]
        problem = problems.of_turn_error(exc, outcome, intervention_id, services.settings, sources)
        if outcome.silenced:
            exchange.record(problem)
            return silent_answer(exchange.request_id, question.session_id, services.policy.name)
        if traced:
            problem = with_trace(problem, turn, exc, exchange.language)
        raise ProblemError(problem) from exc
    exchange.degraded = answer.metadata.degraded
    return answer


async def retry(
    state: AppState, turn_id: int, request: ResumeRequest, log: LogRequest | None = None
) -> ResumeResult:
    """How the turn of an intervention went on; past the failed phase the intervention is closed.
    `log` takes the line of the query log, else its file does.

    Raises ProblemError if it fails again, and what `problems.PROBLEM_OF` knows if it cannot go on.
    """
    flow = state.flow
    try:
        turn = await asyncio.to_thread(load_turn, flow.services.home, turn_id)
        # One that was asked with other settings goes on with a flow of its own.
        suits = turn.asked_with == flow.services.asked_with
        own = flow if suits else await asyncio.to_thread(flow_for, turn, flow.services.home)
        async with nullcontext() if suits else own:
            with state.progress.of_turn(state.metrics.observe) as watch:
                resumed = await resume_turn(own, turn_id, request, observer=watch, log=log)
    except (NotFoundError, ConfigError, InputError, RetrievalError) as exc:
        raise NotResumableError(str(exc)) from exc  # the fault is the turn's, not the request's
    if resumed.failed_again:
        raise ProblemError(problems.invalid("retry_failed", HTTPStatus.CONFLICT))
    return resumed
