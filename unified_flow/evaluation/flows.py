"""The flow that is evaluated, over all documents of a set or all but one group of them; the loop
over the questions that a run has not answered yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from interventions.home import find_home, state_folder
from unified_flow.evaluation.answers import Trouble
from unified_flow.evaluation.datasets import Corpus, DatasetQuestion, without
from unified_flow.evaluation.flow_runner import ask
from unified_flow.evaluation.runs import Run
from unified_flow.flow import UnifiedFlow
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
        self._home = home
        self._corpus = corpus
        self._given = given
        if corpus:
            self._given["collection"] = collection
        self._own_docs = list(self._given.pop("docs", None) or ())
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
