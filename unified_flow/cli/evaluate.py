"""`unified-flow eval`: how good the answers are, and whether a change makes them better."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from typer import Argument, Option

from interventions.cli.terminal import Code, note, say
from interventions.home import find_home
from interventions.plaintext import one_line
from unified_flow.cli import options
from unified_flow.cli.documents import refresh_documents
from unified_flow.cli.terminal import progress_bar, say_list, say_object
from unified_flow.errors import InputError

if TYPE_CHECKING:
    from unified_flow.evaluation.answers import EvaluatedAnswer
    from unified_flow.evaluation.datasets import Dataset
    from unified_flow.evaluation.runs import Run, Spec

PACKAGED = "packaged"


RunName = Annotated[
    str, Argument(metavar="RUN", help="The name of a run (eval list); `last` is the newest.")
]


def run(
    dataset: Annotated[
        Path, Argument(help="SQuAD JSON (1.1, 2.0, XQuAD), or .jsonl of questions and answers.")
    ],
    sample: Annotated[
        int | None, Option(min=1, help="Draw that many questions [default: all].")
    ] = None,
    seed: Annotated[int, Option(help="Seed of the sample; a larger sample holds the smaller.")] = 1,
    unanswerable: Annotated[
        float,
        Option(
            min=0.0,
            max=1.0,
            help="Ask this share once more, without the documents that hold the answer.",
        ),
    ] = 0.0,
    recipes: Annotated[
        str | None, Option(help="Folder of recipes to evaluate, or 'packaged'.")
    ] = None,
    name: Annotated[
        str | None, Option(help="Name of the run [default: made from what decides its results].")
    ] = None,
    again: Annotated[bool, Option("--again", help="Begin the run anew.")] = False,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Ask again what failed in this run.")
    ] = False,
    docs: options.Docs = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
    **chosen: Unpack[options.ModelOptions],
) -> None:
    """Ask a set of questions and say how good the answers are.

    A failure is an intervention, as with ask, and counts as failed. The same command goes on with
    a run that was stopped or killed. A line of a .jsonl file is
    {"id"?, "question", "answer" or "answers", "unanswerable"?, "docs"?}.

    \b
    unified-flow eval run questions.jsonl --docs docs/
    unified-flow eval run squad.json --sample 30 --unanswerable 0.4 --model local:model.gguf
    unified-flow eval run squad.json --sample 30 --recipes my-recipes/

    Exit codes: 0 done, 1 some questions failed and interventions wait, 2 usage or configuration,
    130 stopped (the same command goes on).
    """
    import asyncio

    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.evaluation.datasets import read_dataset

    drawn = read_dataset(dataset), sample, seed, unanswerable
    settings = {**chosen, "docs": docs, "recipes": _recipes(recipes)}
    with logged(find_home(home)):
        done = asyncio.run(_run(drawn, name, again, retry_failed, home, settings))
    _show(as_json, done.folder.name, done.spec, done.answers)
    failed = any(answer.status == "failed" for answer in done.answers.values())
    raise typer.Exit(Code.FAILED if failed else Code.DONE)


def compare(
    run_a: RunName, run_b: RunName, as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """Say whether run B is better than run A.

    Intervals are of 95 %, by the paired bootstrap.

    \b
    unified-flow eval compare squad-local-1f9c0a3e squad-local-77b2e0c1
    """
    from unified_flow.evaluation.answers import comparison

    (name_a, _, answers_a), (name_b, _, answers_b) = _load(run_a, home), _load(run_b, home)
    found = comparison(answers_a, answers_b)
    if not found["questions"]:
        raise InputError(f"{name_a} and {name_b} have no question in common", field="run")
    if as_json:
        say_object({"a": name_a, "b": name_b, **found})
    else:
        _show_comparison(name_a, name_b, found)


def list_runs(
    limit: options.Limit = 20, as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """The latest runs, the newest last.

    \b
    unified-flow eval list
    """
    from unified_flow.evaluation.answers import summary
    from unified_flow.evaluation.flows import evaluations
    from unified_flow.evaluation.runs import load, names

    root = evaluations(home)
    rows, lines = [], []
    for each in names(root)[-limit:]:
        spec, answers = load(root, each)
        right = summary(answers.values())["measures"].get("right", {}).get("value")
        rows.append({"run": each, "model": spec.model, "answered": len(answers), "right": right})
        share = "" if right is None else f"right {right:.3f}"
        lines.append(f"{each}  {len(answers)} questions  {share}  {spec.model}")
    say_list(as_json, {"runs": rows}, lines, "no runs yet: unified-flow eval run DATASET")


def show(
    name: RunName,
    wrong: Annotated[bool, Option("--wrong", help="List the questions that went wrong.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """A run in numbers, and with --wrong what was answered instead.

    \b
    unified-flow eval show squad-local-77b2e0c1 --wrong
    """
    name, spec, answers = _load(name, home)
    _show(as_json, name, spec, answers)
    if wrong and not as_json:
        _show_wrong(answers.values())


def _load(name: str, home: Path | None) -> tuple[str, Spec, dict[str, EvaluatedAnswer]]:
    from unified_flow.evaluation.flows import evaluations
    from unified_flow.evaluation.runs import load, names

    root = evaluations(home)
    if name == options.LAST and (found := names(root)):
        name = found[-1]
    return name, *load(root, name)


def _recipes(named: str | None) -> Path | None:
    from unified_flow.phases.recipe import PACKAGED as PACKAGED_RECIPES

    if named is None:
        return None
    return PACKAGED_RECIPES if named == PACKAGED else Path(named).absolute()


async def _run(
    drawn: tuple[Dataset, int | None, int, float],
    name: str | None,
    again: bool,
    retry_failed: bool,
    home: Path | None,
    settings: dict[str, Any],
) -> Run:
    """The run, closed, with all its answers. `drawn` is what `draw` takes, `settings` what `wire`
    does."""
    from unified_flow.evaluation.datasets import corpus_of, draw
    from unified_flow.evaluation.flows import MOST_FAILURES, Flows, evaluations
    from unified_flow.evaluation.runs import Run, spec_of

    dataset, questions = drawn[0], draw(*drawn)
    root = evaluations(home)
    corpus = corpus_of(dataset, root / "corpora")
    flows = Flows(home, corpus, f"evaluation-{dataset.digest[:12]}", **settings)
    watched = sys.stderr.isatty()
    try:
        refresh_documents(flows.of(), show=watched)
        spec = spec_of(dataset, flows.of().services, *drawn[1:])
        with Run.open(root, name, spec, again=again) as run:
            note(f"run {run.folder.name}")
            with progress_bar("evaluating", show=watched) as progress:
                stopped_by = await flows.evaluate(
                    run, questions, retry_failed=retry_failed, progress=progress
                )
            if stopped_by is not None:
                why = one_line(stopped_by.message)
                note(f"stopped after {MOST_FAILURES} failures in a row; the last: {why}")
                note("mend the cause; the same command with --retry-failed goes on")
    finally:
        await flows.aclose()
    return run


def _show(as_json: bool, run: str, spec: Spec, answers: Mapping[str, EvaluatedAnswer]) -> None:
    from unified_flow.evaluation.answers import COST, MEASURES, summary

    found = summary(answers.values())
    if as_json:
        say_object({"run": run, "spec": spec.model_dump(mode="json"), **found})
        return
    absent = f"{found['unanswerable']} without an answer"
    say(f"{run}: {found['questions']} questions, {absent}; model {spec.model}")
    for name, each in found["measures"].items():
        value = f"{each['value']:7.3f}   [{each['low']:.3f}, {each['high']:.3f}]  n {each['n']}"
        shown = f"{each['value']:10.2f}" if name in COST else value
        say(f"  {MEASURES[name].meaning:<52}{shown}")
    if found["phases"]:
        say("  a turn:           visits  calls   prompt  written  seconds")
    for name, cost in found["phases"].items():
        say(
            f"  {name:<17}{cost['visits']:7.2f}{cost['calls']:7.2f}"
            f"{cost['prompt_tokens']:9.0f}{cost['completion_tokens']:9.0f}{cost['seconds']:9.2f}"
        )
    if found["interventions"]:
        say(f"  {len(found['interventions'])} interventions: interventions list")


def _show_comparison(run_a: str, run_b: str, found: dict[str, Any]) -> None:
    from unified_flow.evaluation.answers import COST, MEASURES

    say(f"A {run_a}\nB {run_b}")
    say(f"over {found['questions']} questions that both have answered; B - A, 95 %:")
    for name, each in found["measures"].items():
        digits = 2 if name in COST else 3
        say(
            f"  {MEASURES[name].meaning:<52}{each['a']:9.{digits}f}{each['b']:9.{digits}f}"
            f"{each['difference']:+9.{digits}f}   [{each['low']:+.{digits}f},"
            f" {each['high']:+.{digits}f}]  {each['verdict']}"
        )


def _show_wrong(answers: Iterable[EvaluatedAnswer]) -> None:
    from interventions.secrets.redaction import redact_for_asker
    from unified_flow.evaluation.answers import QUALITY

    for answer in answers:
        if QUALITY["right"].of(answer):
            continue
        expected = "no answer" if answer.unanswerable else " / ".join(answer.answers)
        said = answer.trouble.message if answer.trouble else answer.response
        say(f"\n{answer.id}  {one_line(answer.question)}")
        say(f"  expected: {one_line(expected)}")
        say(f"  {answer.status}: {one_line(redact_for_asker(said))}")
