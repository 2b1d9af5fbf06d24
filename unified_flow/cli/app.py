"""The program `unified-flow`; `commands.toml` has its commands and where each of them is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import typer

from interventions.cli import app as interventions
from interventions.cli.command_group import HELP_OPTIONS, CommandGroup
from unified_flow.cli.exits import exits


class Commands(CommandGroup):
    package = "unified_flow.cli"
    program = "unified-flow"
    guard = staticmethod(exits)

    @classmethod
    def of(cls, name: str, help_text: str, table: Mapping[str, str]) -> Commands:
        group = cls(name=name, help=help_text, no_args_is_help=True, context_settings=HELP_OPTIONS)
        group.sections = {"Commands": table}
        return group


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


def _command(name: str, row: Any) -> str | click.Command:
    """Where the command is, or a group of commands."""
    if isinstance(row["call"], str):
        return str(row["call"])
    return Commands.of(name, row["help"], row["call"])


_TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
_TRIAGE = {"interventions": typer.main.get_group(interventions), "monitor": MONITOR}
Commands.sections = {
    section: (_TRIAGE if section == "When it breaks" else {})
    | {name: _command(name, row) for name, row in table.items()}
    for section, table in _TABLE.items()
}

app = Commands.app(
    "Ask your documents a question; when a phase fails, the turn stops and waits for a person.\n\n"
    "Try:  unified-flow ask 'How do topics differ from services?' --docs docs/"
)
