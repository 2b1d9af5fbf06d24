"""The commands of `unified-flow`, and what each says of itself."""

from __future__ import annotations

import typer

from interventions.cli.main import app as interventions
from unified_flow.cli import (
    ask,
    collections,
    config,
    doctor,
    evaluate,
    guardrails,
    index,
    keeping,
    memory,
    model,
    replay,
    resume,
    rules,
    search,
    serve,
    sessions,
    tools,
    trace,
    turns,
)
from unified_flow.cli.chat import command as chat

app = typer.Typer(
    name="unified-flow",
    help=(
        "Ask your documents a question; when a phase fails the turn stops and a person is told.\n\n"
        "Try:  unified-flow ask 'How do topics differ from services?' --docs docs/"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from unified_flow import __version__

        typer.echo(f"unified-flow {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", "-V", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Ask your documents a question; when a phase fails the turn stops and a person is told."""


app.command("ask")(ask.ask)
app.command("chat")(chat.chat)
app.command("resume")(resume.resume)
app.command("replay")(replay.replay)
app.command("index")(index.index)
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.add_typer(collections.app, name="collections")
turns.app.command("abandon")(keeping.abandon)
turns.app.command("prune")(keeping.prune)
app.add_typer(turns.app, name="turns")
app.command("trace")(trace.trace)
app.add_typer(tools.app, name="tools")
app.add_typer(sessions.app, name="sessions")
app.add_typer(rules.app, name="rules")
app.add_typer(guardrails.decisions, name="decisions")
app.add_typer(guardrails.app, name="guardrails")
app.add_typer(memory.app, name="memory")
app.command("init")(config.init)
app.add_typer(config.app, name="config")
app.add_typer(model.app, name="model")
app.add_typer(evaluate.app, name="eval")
app.command("doctor")(doctor.doctor)
app.add_typer(interventions, name="interventions")


@app.command(
    "monitor",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def _monitor(ctx: typer.Context) -> None:
    """Triage in the terminal: what waits for a person, live."""
    from monitor.__main__ import main

    main(ctx.args)
