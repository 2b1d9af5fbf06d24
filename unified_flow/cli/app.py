"""The program `unified-flow`; `commands.toml` has its commands and where each of them is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click
import typer
from typer.core import TyperCommand

from interventions.cli.command_group import CommandGroup
from interventions.cli.main import app as interventions
from unified_flow.cli.exits import exits


class FlowCommand(TyperCommand):
    def invoke(self, ctx: click.Context) -> Any:
        with exits():
            return super().invoke(ctx)


class Commands(CommandGroup):
    package = "unified_flow.cli"
    program = "unified-flow"
    leaf_class = FlowCommand


def _monitor(home: Path | None, arguments: list[str]) -> None:
    from monitor.__main__ import main

    main([*(["--home", str(home)] if home else []), *arguments])


MONITOR = click.Command(
    "monitor",
    callback=_monitor,
    help="Triage in the terminal: what waits for a person, live.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    params=[
        click.Option(["--home"], type=click.Path(path_type=Path)),
        click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED),
    ],
)


def _command(name: str, told: Any) -> str | click.Command:
    """Where the command is, or a group of commands."""
    if isinstance(told["call"], str):
        return str(told["call"])
    return Commands.of(name, told["help"], told["call"], default=told.get("default"))


_TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
Commands.table = {
    **{name: _command(name, told) for name, told in _TABLE.items()},
    "interventions": typer.main.get_group(interventions),
    "monitor": MONITOR,
}

app = Commands.app(
    "Ask your documents a question; when a phase fails, the turn stops and waits for a person.\n\n"
    "Try:  unified-flow ask 'How do topics differ from services?' --docs docs/"
)
