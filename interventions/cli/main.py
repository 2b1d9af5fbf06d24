"""The commands of `interventions`. The module of a command is loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import click
import typer
from typer.core import TyperGroup

from interventions.cli.options import Home

_COMMANDS = {
    "list": "listing:list_",
    "show": "showing:show",
    "resolve": "closing:resolve",
    "dismiss": "closing:dismiss",
    "snooze": "closing:snooze",
    "reopen": "closing:reopen",
    "undo": "closing:undo",
    "assign": "closing:assign",
    "retry": "retrying:retry",
    "similar": "listing:similar",
    "history": "listing:history",
    "health": "tending:health",
    "drain": "tending:drain",
    "doctor": "tending:doctor",
    "export": "showing:export",
    "watch": "tending:watch",
}


class _LateGroup(TyperGroup):
    """Building sixteen commands takes longer than running one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, function = _COMMANDS[cmd_name].split(":")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(getattr(import_module(f"interventions.cli.{module}"), function))
        return typer.main.get_command(alone)


# Typer escapes the brackets of its help for Rich, also where it prints without Rich.
typer.core.HAS_RICH = False

app = typer.Typer(
    name="interventions",
    cls=_LateGroup,
    help="Failures that wait for a person: look, mend, and say what you did.\n\n"
    "Start with:  interventions list",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Rich costs as much as the rest of the start-up, and help reads as well without it.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"interventions {version('unified-flow')}")
        raise typer.Exit


@app.callback()
def _main(
    ctx: typer.Context,
    home: Home = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Failures that wait for a person: look, mend, and say what you did."""
    # `interventions --home X list` means the same as `interventions list --home X`.
    if home is not None:
        ctx.default_map = {name: {"home": str(home)} for name in _COMMANDS}
