"""The flow that is evaluated, over all documents of a set or all but one group of them: the
questions that a run has not answered yet, each as with `ask`, watched by its events."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from interventions.home import find_home, state_folder
from unified_flow.config.settings import EMBEDDED
from unified_flow.errors import InputError
from unified_flow.evaluation.answers import Cost, EvaluatedAnswer, Trouble, contained
from unified_flow.evaluation.datasets import Corpus, DatasetQuestion, without
from unified_flow.evaluation.runs import Run
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.clock import elapsed_ms
from unified_flow.models.embedded.statements import texts_of
from unified_flow.phases.errors import PhaseError
from unified_flow.phases.grounding.citations import supported_sentences
from unified_flow.turns.events import (
    ModelCalled,
    ModelFailed,
    Observed,
    PhaseCompleted,
    PhaseFailed,
)
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

MOST_FAILURES = 10


def evaluations(home: Path | str | None) -> Path:
    """Where runs and corpora are."""
    return state_folder(find_home(home)) / "evaluations"


class Flows:
    """Flows of one evaluation; they share their models.

    `given` is what `wire` takes. Raises what it raises.
    """

    def __init__(
        self, home: Path | str | None, corpus: Corpus, collection: str, **given: Any
    ) -> None:
        self._home, self._corpus = home, corpus
        self._own_docs = list(given.pop("docs", None) or ())
        self._given = given | ({"collection": collection} if corpus else {})
        self._flows: dict[str, UnifiedFlow] = {}
        self.of()

    def of(self, left_out: str = "") -> UnifiedFlow:
        """Over all documents, or all but those of a group."""
        if left_out not in self._flows:
            docs = [*without(self._corpus, left_out), *self._own_docs]
            services = wire(self._home, docs=docs or None, **self._given)
            if left_out:
                services = replace(services, models=self.of().services.models)
            self._flows[left_out] = UnifiedFlow(services)
        return self._flows[left_out]

    async def evaluate(
        self,
        run: Run,
        questions: Sequence[DatasetQuestion],
        *,
        retry_failed: bool,
        progress: Callable[[int, int], None] | None,
    ) -> Trouble | None:
        """The last failure if `MOST_FAILURES` in a row ended it: nearly always they have one cause.

        `retry_failed` asks again what has failed. Raises what keeps a turn from beginning.
        """
        failed = 0
        for number, question in enumerate(questions, 1):
            known = run.answers.get(question.id)
            if known is None or (retry_failed and known.status == "failed"):
                flow = self.of(question.group if question.left_out else "")
                answer = await ask(flow, question)
                run.add(answer)
                failed = failed + 1 if answer.status == "failed" else 0
                if failed == MOST_FAILURES:
                    return answer.trouble
            if progress is not None:
                progress(number, len(questions))
        return None

    async def aclose(self) -> None:
        for flow in self._flows.values():
            await flow.aclose()


USER = "evaluation"


async def ask(flow: UnifiedFlow, question: DatasetQuestion) -> EvaluatedAnswer:
    """A failure is an intervention, as in any other turn, and an answer that says so.

    Nothing of the turn is kept but that. Raises what keeps a turn from beginning at all:
    ConfigError, QueueFullError.
    """
    events: list[Observed] = []
    error: PhaseError | InputError | None = None
    session = f"{USER}_{secrets.token_hex(6)}"
    started = perf_counter()
    try:
        turn = await flow.process(
            session, question.text, user_id=USER, observer=events.append, persist=False
        )
    except PhaseError as exc:
        turn, error = exc.turn, exc
    except InputError as exc:
        turn, error = Turn(), exc
    took = elapsed_ms(started)
    answer = _answer(question, turn, _trouble(turn, error))
    return answer.model_copy(update={"duration_ms": took, "phases": costs(events)})


def _trouble(turn: Turn, error: PhaseError | InputError | None) -> Trouble | None:
    """Why there is no answer: a failure, or silence where an answer was due, by the policy `silent`
    or by a guardrail."""
    why = str(error) if error is not None else turn.error_message
    if why is None:
        return None
    failure = turn.failure
    if failure is None:
        return Trouble(error_type=type(error).__name__ if error else "Blocked", message=why)
    return Trouble(
        error_type=failure.error_type,
        message=why,
        phase=failure.phase,
        intervention_id=failure.intervention_id,
    )


def _answer(question: DatasetQuestion, turn: Turn, trouble: Trouble | None) -> EvaluatedAnswer:
    texts = texts_of(turn.sections)
    draft = turn.sections.synthesis
    given = trouble is None and turn.status == "answered" and draft is not None
    citations = turn.citations if given else []
    return EvaluatedAnswer(
        id=question.id,
        question=question.text,
        answers=list(question.answers),
        unanswerable=question.unanswerable,
        status="failed" if trouble else "answered" if given else "clarify",
        response=turn.response or "" if trouble is None else "",
        abstained=given and turn.abstained,
        citations=citations,
        supported=supported_sentences(draft, turn.question, turn.sections)
        if given and draft and draft.citations
        else [],
        retrieved=any(contained(text, question.answers) for text in texts),
        gold_cited=any(contained(f"{c.quote}\n{c.passage}", question.answers) for c in citations),
        trouble=trouble,
        turn_id=turn.turn_id or None,
        request_id=turn.request_id or None,
    )


def costs(events: Iterable[Observed]) -> dict[str, Cost]:
    """What each phase took, in the order in which they came."""
    found: dict[str, Cost] = {}
    for event in events:
        match event:
            case PhaseCompleted() | PhaseFailed():
                cost = Cost(visits=1, duration_ms=event.duration_ms)
            case ModelCalled() if event.model != EMBEDDED:  # rules cost nothing
                read, written = event.prompt_tokens or 0, event.completion_tokens or 0
                cost = Cost(calls=1, prompt_tokens=read, completion_tokens=written)
            case ModelFailed() if event.model != EMBEDDED:
                cost = Cost(calls=1)
            case _:
                continue
        found[event.phase] = found.get(event.phase, Cost()) + cost
    return found
