"""A turn as server-sent events: phases as they come, then the answer's text, then all of it.

The text comes when the turn has ended: before that validation may still take it back. Where a turn
may end in silence, its phases are not shown: how far it came would tell why.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from unified_flow.api.answers import Answer
from unified_flow.api.asking import Question, ask
from unified_flow.api.context import Serving
from unified_flow.api.facts import Facts
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.problem import CLIENT_CLOSED, Problem
from unified_flow.api.problems.rendering import ProblemError, content, headers_of, note
from unified_flow.api.running import cancelled
from unified_flow.api.trace import with_trace
from unified_flow.errors import InputError
from unified_flow.turns.events import Observed, PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.turns.input_checks import checked_question
from unified_flow.turns.turn import Turn

KEEP_ALIVE_S = 15.0
PIECE = 40
_PIECES = re.compile(rf".{{1,{PIECE}}}\s|\S{{1,{PIECE}}}\s?|\s", re.DOTALL)


def begin(
    serving: Serving, question: Question, facts: Facts, *, traced: bool
) -> AsyncIterator[str]:
    """The events of a turn that has begun. Whoever stops reading cancels it. Raises ProblemError
    where none can be: what fails before the first event has its own status, later the event's."""
    try:
        checked_question(question.text)
    except InputError as exc:
        problem = problems.invalid(exc.reason, field_name=exc.field)
        if traced:
            problem = with_trace(problem, Turn(), exc, facts.language)
        raise ProblemError(problem) from exc
    phases: asyncio.Queue[Observed] = asyncio.Queue()
    silent = serving.flow.services.guardrails.may_silence
    observer = None if silent else phases.put_nowait
    work = ask(serving.flow, question, facts, serving.metrics, observer, traced=traced)
    return _events(serving, serving.running.start(work), phases, facts)


async def _events(
    serving: Serving,
    task: asyncio.Task[Answer],
    phases: asyncio.Queue[Observed],
    facts: Facts,
) -> AsyncIterator[str]:
    try:
        async for event in _until_done(task, phases):
            yield event
        try:
            answer = serving.running.result(task)
        except ProblemError as exc:
            yield _failed(exc.problem, facts)
            return
        for piece in pieces(answer.answer):
            yield _event("text", {"text": piece})
        yield _event("answer", answer.model_dump(mode="json"))
    finally:
        if not task.done():
            facts.status = CLIENT_CLOSED
            await cancelled(task)


def pieces(text: str) -> Iterator[str]:
    """The text in parts that end between words; together they are the text."""
    return (found[0] for found in _PIECES.finditer(text))


async def _until_done(
    task: asyncio.Task[Any], phases: asyncio.Queue[Observed]
) -> AsyncIterator[str]:
    """What the phases do, and a sign of life now and then, until the turn has ended."""
    while not task.done() or not phases.empty():
        getting = asyncio.ensure_future(phases.get())
        try:
            await asyncio.wait(
                {task, getting}, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            if not getting.done():
                getting.cancel()
        if getting.done() and not getting.cancelled():
            if (shown := _phase(getting.result())) is not None:
                yield shown
        elif not task.done():
            yield ": still working\n\n"


def _phase(event: Observed) -> str | None:
    if isinstance(event, PhaseStarted):
        known: dict[str, Any] = {"name": event.phase, "visit": event.visit, "status": "started"}
    elif isinstance(event, PhaseCompleted | PhaseFailed):
        status = "completed" if isinstance(event, PhaseCompleted) else "failed"
        known = {
            "name": event.phase,
            "visit": event.visit,
            "status": status,
            "duration_ms": event.duration_ms,
        }
    else:
        return None
    return _event("phase", known)


def _failed(problem: Problem, facts: Facts) -> str:
    note(problem, facts)
    more: dict[str, Any] = {"status": problem.status}
    if wait := headers_of(problem).get("Retry-After"):
        more["retry_after"] = int(wait)
    return _event("error", content(problem, facts) | more)


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
