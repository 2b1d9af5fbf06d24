"""The loop: every question that a run has not answered yet, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unified_flow.evaluation.cache import ReplyCache
from unified_flow.evaluation.datasets import DatasetQuestion
from unified_flow.evaluation.flow_runner import ask
from unified_flow.evaluation.flows import Flows
from unified_flow.evaluation.plain_pipeline import ask_plainly
from unified_flow.evaluation.runs import Run


async def evaluate(
    run: Run,
    questions: Sequence[DatasetQuestion],
    flows: Flows,
    cache: ReplyCache | None,
    *,
    retry_failed: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """`retry_failed` asks also what has failed before. Raises what keeps a turn from beginning."""
    asking = ask_plainly if run.spec.pipeline == "plain" else ask
    for number, question in enumerate(questions, 1):
        known = run.answers.get(question.id)
        if known is None or (retry_failed and known.status == "failed"):
            flow = flows.of(question.group if question.left_out else "")
            run.add(await asking(flow, question, cache))
        if progress is not None:
            progress(number, len(questions))
