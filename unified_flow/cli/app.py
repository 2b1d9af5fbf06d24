"""The program `unified-flow`; `commands.toml` has its commands and where each of them is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import typer
from typer.core import TyperCommand

from interventions.cli import app as interventions
from interventions.cli.command_group import HELP_OPTIONS, CommandGroup
from unified_flow.cli.exits import exits


class FlowCommand(TyperCommand):
    def invoke(self, ctx: click.Context) -> Any:
        with exits():
            return super().invoke(ctx)


class Commands(CommandGroup):
    package = "unified_flow.cli"
    program = "unified-flow"
    leaf_class = FlowCommand
    default: str | None = None  # the command that is meant where none is named

    @classmethod
    def of(
        cls, name: str, help_text: str, table: Mapping[str, str], *, default: str | None = None
    ) -> Commands:
        group = cls(name=name, help=help_text, no_args_is_help=True, context_settings=HELP_OPTIONS)
        group.sections, group.default = {"Commands": table}, default
        return group

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = 0
        while at < len(args) and args[at].partition("=")[0] in ("--home", "--json"):
            at += 2 if args[at] == "--home" else 1
        is_named = not args[at:] or args[at] in {*self.table, "-h", "--help", "-V", "--version"}
        if self.default and not is_named:
            args = [*args[:at], self.default, *args[at:]]
        return super().parse_args(ctx, args)


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
_TRIAGE = {"interventions": typer.main.get_group(interventions), "monitor": MONITOR}
Commands.sections = {
    section: (_TRIAGE if section == "When it breaks" else {})
    | {name: _command(name, told) for name, told in table.items()}
    for section, table in _TABLE.items()
}

app = Commands.app(
    "Ask your documents a question; when a phase fails, the turn stops and waits for a person.\n\n"
    "Try:  unified-flow ask 'How do topics differ from services?' --docs docs/"
)
