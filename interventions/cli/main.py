"""The commands of `interventions`. The module of a command is loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click
import typer
from typer.core import TyperGroup

from interventions.cli.options import AsJson, Home

_COMMANDS = {
    "list": "entries:list_",
    "show": "entries:show",
    "resolve": "transitions:resolve",
    "dismiss": "transitions:dismiss",
    "snooze": "transitions:snooze",
    "reopen": "transitions:reopen",
    "undo": "transitions:undo",
    "assign": "transitions:assign",
    "retry": "retry:retry",
    "similar": "entries:similar",
    "history": "entries:history",
    "health": "upkeep:health",
    "drain": "upkeep:drain",
    "doctor": "upkeep:doctor",
    "export": "entries:export",
    "watch": "entries:watch",
}


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        typer.echo(f"interventions {version('unified-flow')}")
        context.exit()


def _version_option(*, hidden: bool) -> click.Option:
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        hidden=hidden,
        callback=_print_version,
        help="Print the version.",
    )


class _LateGroup(TyperGroup):
    """Building sixteen commands takes longer than running one."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), _version_option(hidden=False)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, function = _COMMANDS[cmd_name].split(":")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(getattr(import_module(f"interventions.cli.{module}"), function))
        command = typer.main.get_command(alone)
        command.params.append(_version_option(hidden=True))
        return command


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


@app.callback()
def _main(ctx: typer.Context, home: Home = None, as_json: AsJson = False) -> None:
    """Failures that wait for a person: look, mend, and say what you did."""
    # `interventions --home X list` means the same as `interventions list --home X`.
    given: dict[str, object] = {"home": str(home)} if home is not None else {}
    if as_json:
        given["as_json"] = True
    if given:
        ctx.default_map = dict.fromkeys(_COMMANDS, given)
