"""`unified-flow eval`: how good the answers are, and whether a change makes them better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from interventions.cli.terminal import Code, say
from unified_flow.cli import options

PACKAGED = "packaged"


RunName = Annotated[str, typer.Argument(metavar="RUN", help="The name of a run: eval list.")]


def run(
    dataset: Annotated[
        Path,
        typer.Argument(help="SQuAD JSON (1.1, 2.0, XQuAD), or .jsonl of questions and answers."),
    ],
    sample: Annotated[
        int | None, typer.Option(min=1, help="Draw that many questions [default: all].")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of what is drawn; a larger sample holds the smaller.")
    ] = 1,
    unanswerable: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="As many more, by this share, without the documents they need."
        ),
    ] = 0.0,
    plain: Annotated[
        bool, typer.Option("--plain", help="Not the flow: the best four passages and one prompt.")
    ] = False,
    recipes: Annotated[
        str | None, typer.Option(help="Folder of recipes to evaluate, or 'packaged'.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Another one, or 'packaged': evaluate both, and say which is better."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Of the run [default: made from what decides its results].")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Begin the run anew; replies come from the cache.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again what failed in this run.")
    ] = False,
    no_cache: Annotated[
        bool,
        typer.Option("--no-cache", help="Neither take model replies from the cache nor keep them."),
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
    unified-flow eval run squad.json --sample 30 --plain --model local:model.gguf
    unified-flow eval run squad.json --sample 30 --recipes packaged --against my-recipes/

    Exit codes: 0 done, 1 some questions failed and interventions wait, 2 usage or configuration,
    130 stopped (the same command goes on).
    """
    if against is not None and plain:
        raise typer.BadParameter("--plain has no recipes to compare")
    if against is not None and name is not None:
        raise typer.BadParameter("two runs are made: each has the name that it makes itself")
    import asyncio

    from interventions.home import find_home
    from unified_flow.cli.evaluating import Wanted, check, report, run_once
    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.evaluation.datasets import draw, read_dataset

    read = read_dataset(dataset)
    questions = draw(read, sample, seed, unanswerable)
    wanted = Wanted(sample, seed, unanswerable, plain, name, again, retry_failed, not no_cache)

    def own(folder: str | None) -> dict[str, Any]:
        return {**chosen, "docs": docs, "recipes": _recipes(folder)}

    with logged(find_home(home)):
        folders = [recipes] if against is None else [recipes, against]
        for folder in folders[1:]:
            asyncio.run(check(read, wanted, home, own(folder)))
        runs = [asyncio.run(run_once(read, questions, wanted, home, own(f))) for f in folders]
    report(runs, as_json)
    failed = any(a.status == "failed" for each in runs for a in each.answers.values())
    raise typer.Exit(Code.FAILED if failed else Code.DONE)


def compare(
    run_a: RunName, run_b: RunName, as_json: options.AsJson = False, home: options.Home = None
) -> None:
    """Whether run B is better than run A, over the questions that both have answered.

    Intervals are of 95 %, by the paired bootstrap.

    \b
    unified-flow eval compare squad-local-plain-1f9c0a3e squad-local-77b2e0c1
    """
    from unified_flow.cli.evaluation_tables import comparison_table
    from unified_flow.errors import InputError
    from unified_flow.evaluation.flows import evaluations
    from unified_flow.evaluation.runs import load
    from unified_flow.evaluation.summary import comparison

    root = evaluations(home)
    found = comparison(load(root, run_a)[1], load(root, run_b)[1])
    if not found["questions"]:
        raise InputError(f"{run_a} and {run_b} have no question in common", field="run")
    if as_json:
        say(json.dumps({"a": run_a, "b": run_b, **found}))
    else:
        say(comparison_table(run_a, run_b, found))


def list_runs(as_json: options.AsJson = False, home: options.Home = None) -> None:
    """The runs so far, with how many questions each has answered.

    \b
    unified-flow eval list
    """
    from unified_flow.evaluation.flows import evaluations
    from unified_flow.evaluation.runs import load, names
    from unified_flow.evaluation.summary import summary

    root = evaluations(home)
    rows = []
    for each in names(root):
        spec, answers = load(root, each)
        right = summary(answers.values())["measures"].get("right", {}).get("value")
        rows.append({"run": each, "model": spec.model, "answered": len(answers), "right": right})
    if as_json:
        say(json.dumps({"runs": rows}))
    elif not rows:
        say("no runs yet: unified-flow eval DATASET")
    for row in [] if as_json else rows:
        right = "" if row["right"] is None else f"right {row['right']:.3f}"
        say(f"{row['run']}  {row['answered']} questions  {right}  {row['model']}")


def show(
    name: RunName,
    wrong: Annotated[bool, typer.Option("--wrong", help="Each question that went wrong.")] = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """A run in numbers, and with --wrong what was answered instead.

    \b
    unified-flow eval show squad-local-77b2e0c1 --wrong
    """
    from unified_flow.cli.evaluating import described
    from unified_flow.cli.evaluation_tables import summary_table, wrong_answers
    from unified_flow.evaluation.flows import evaluations
    from unified_flow.evaluation.runs import load

    spec, answers = load(evaluations(home), name)
    found = described(name, spec, answers)
    if as_json:
        say(json.dumps(found))
    else:
        say(summary_table(found))
        if wrong:
            say(wrong_answers(answers.values()))


def _recipes(named: str | None) -> Path | None:
    from unified_flow.phases.recipe import PACKAGED as PACKAGED_RECIPES

    if named is None:
        return None
    return PACKAGED_RECIPES if named == PACKAGED else Path(named).absolute()
