"""One run of `unified-flow eval`, with its progress, and the report on what came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interventions.cli.terminal import note, say
from unified_flow.cli.evaluation_tables import comparison_table, summary_table
from unified_flow.cli.progress import bar
from unified_flow.cli.running import refresh_documents
from unified_flow.evaluation.answers import EvaluatedAnswer
from unified_flow.evaluation.cache import ReplyCache
from unified_flow.evaluation.datasets import Dataset, DatasetQuestion, corpus_of
from unified_flow.evaluation.evaluating import evaluate
from unified_flow.evaluation.flows import Flows, evaluations
from unified_flow.evaluation.plain_pipeline import voice_of
from unified_flow.evaluation.runs import Run, Spec, spec_of
from unified_flow.evaluation.summary import comparison, summary


@dataclass(frozen=True)
class Wanted:
    """The first four decide the results; of a run that is there already, the others what to do."""

    sample: int | None
    seed: int
    unanswerable: float
    plain: bool
    name: str | None = None
    again: bool = False
    retry_failed: bool = False
    cached: bool = True


async def run_once(
    dataset: Dataset,
    questions: Sequence[DatasetQuestion],
    wanted: Wanted,
    home: Path | None,
    flags: dict[str, Any],
) -> Run:
    """`flags` are those of `wire`. The run, closed, with all its answers."""
    root = evaluations(home)
    cache = ReplyCache(root) if wanted.cached else None
    flows = _flows(dataset, home, cache, flags)
    watched = sys.stderr.isatty()
    try:
        spec = _spec(dataset, wanted, flows)
        with Run.open(root, wanted.name, spec, again=wanted.again) as run:
            note(f"run {run.folder.name}")
            with bar("evaluating", show=watched) as progress:
                await evaluate(
                    run,
                    questions,
                    flows,
                    cache,
                    retry_failed=wanted.retry_failed,
                    progress=progress,
                )
    finally:
        await flows.aclose()
        if cache is not None:
            cache.close()
    return run


async def check(dataset: Dataset, wanted: Wanted, home: Path | None, flags: dict[str, Any]) -> None:
    """Raises what would keep `run_once` from its first question: a second run is checked before
    the first one asks, which may take hours."""
    flows = _flows(dataset, home, None, flags)
    try:
        _spec(dataset, wanted, flows)
    finally:
        await flows.aclose()


def _flows(
    dataset: Dataset, home: Path | None, cache: ReplyCache | None, flags: dict[str, Any]
) -> Flows:
    corpus = corpus_of(dataset, evaluations(home) / "corpora")
    return Flows(home, corpus, f"evaluation-{dataset.digest[:12]}", cache, **flags)


def _spec(dataset: Dataset, wanted: Wanted, flows: Flows) -> Spec:
    services = flows.whole.services
    if wanted.plain:
        voice_of(services)
    refresh_documents(flows.whole, show=sys.stderr.isatty())
    return spec_of(
        dataset,
        services,
        sample=wanted.sample,
        seed=wanted.seed,
        unanswerable=wanted.unanswerable,
        plain=wanted.plain,
    )


def described(name: str, spec: Spec, answers: Mapping[str, EvaluatedAnswer]) -> dict[str, Any]:
    """A run as JSON."""
    return {"run": name, "spec": spec.model_dump(mode="json"), **summary(answers.values())}


def report(runs: Sequence[Run], as_json: bool) -> None:
    """One run, or two and how the second compares with the first."""
    found = [described(run.folder.name, run.spec, run.answers) for run in runs]
    compared = comparison(runs[0].answers, runs[1].answers) if len(runs) > 1 else None
    if as_json:
        say(json.dumps({"runs": found, "comparison": compared} if compared else found[0]))
        return
    for each in found:
        say(summary_table(each))
    if compared is not None:
        say(comparison_table(found[0]["run"], found[1]["run"], compared))
