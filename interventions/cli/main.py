"""The commands of `interventions`, and what each says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from interventions.cli import closing, listing, showing, tending
from interventions.cli.options import Home

app = typer.Typer(
    name="interventions",
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
        ctx.default_map = {name: {"home": str(home)} for name in _NAMES}


_COMMANDS: dict[str, Callable[..., None]] = {
    "list": listing.list_,
    "show": showing.show,
    "resolve": closing.resolve,
    "dismiss": closing.dismiss,
    "snooze": closing.snooze,
    "reopen": closing.reopen,
    "undo": closing.undo,
    "assign": closing.assign,
    "retry": closing.retry,
    "similar": listing.similar,
    "history": listing.history,
    "health": tending.health,
    "drain": tending.drain,
    "doctor": tending.doctor,
    "export": showing.export,
    "watch": tending.watch,
}
_NAMES = tuple(_COMMANDS)

for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
