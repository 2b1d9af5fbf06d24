"""What the commands of both programs have in common: they are loaded when they are called, take the
same options on both sides of the command, and end with an exit code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, get_args, get_type_hints

import click
import typer
from typer.core import TyperGroup

from interventions.cli.terminal import exits

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
_WHOLE = 10_000  # characters of a description: all of its first sentence
LAST_OPTIONS = ("as_json", "as_jsonl", "home")
OF_RESUMER = "of_resumer"  # a key of shared options: `options.ResumeFlags`

# Typer escapes the brackets of its help for Rich, also where it prints without Rich. Rich costs as
# much as the rest of the start-up, and help reads as well without it.
typer.core.HAS_RICH = False


class CommandGroup(TyperGroup):
    """Loads a command's module when the command is called: building all of them takes longer than
    running one. `--home` and `--json` before a command mean the same as after it.

    `sections` are those of its help: by name, where a command's function is ("module:function" in
    `package`), or the command itself. By `guard` what goes wrong in one becomes a line and an exit
    code.
    """

    package: ClassVar[str] = "interventions.cli"
    program: ClassVar[str] = "interventions"
    guard = staticmethod(exits)
    sections: Mapping[str, Mapping[str, str | click.Command]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"callback": None, "rich_markup_mode": None})
        place = "Folder that holds shared_state/ and logs/; also after the command."
        as_json = "Print JSON; also after the command."
        self.params = [
            click.Option(["--home"], type=click.Path(path_type=Path), help=place),
            click.Option(["--json", "as_json"], is_flag=True, help=as_json),
        ]
        self._add_version(self)

    def _add_version(self, command: click.Command, *, hidden: bool = False) -> None:
        names = {"package_name": "unified-flow", "prog_name": self.program}
        said = {"message": "%(prog)s %(version)s", "help": "Print the version."}
        click.version_option(None, "-V", "--version", hidden=hidden, **names, **said)(command)

    @classmethod
    def app(cls, help_text: str) -> typer.Typer:
        """The program itself, of which this class has the table."""
        return typer.Typer(
            name=cls.program,
            cls=cls,
            callback=lambda: None,  # without one Typer makes no group
            help=help_text,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
            context_settings=HELP_OPTIONS,
        )

    @property
    def table(self) -> dict[str, str | click.Command]:
        return {name: at for section in self.sections.values() for name, at in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, with their whole descriptions."""
        width = max(map(len, self.table))
        for title, names in self.sections.items():
            with formatter.section(title):
                rows = [(n.ljust(width), self._load(n).get_short_help_str(_WHOLE)) for n in names]
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._load(cmd_name) if cmd_name in self.table else None

    def _load(self, name: str) -> click.Command:
        found = self.table[name]
        if not isinstance(found, str):
            return found
        module, _, function = found.partition(":")
        loaded = getattr(import_module(f"{self.package}.{module}"), function)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(self.guard()(_with_shared_options(loaded)))
        command = typer.main.get_command(alone)
        self._add_version(command, hidden=True)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        given = {name: ctx.params[name] for name in ("home", "as_json") if ctx.params.get(name)}
        if given:
            ctx.default_map = dict.fromkeys(self.table, given)
        return rest

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        taken = {each.name for each in command.get_params(ctx)} if command is not None else set()
        if ctx.params.get("as_json") and "as_json" not in taken and not ctx.resilient_parsing:
            ctx.fail(f"{name} prints no JSON: leave out --json")
        return name, command, rest


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Typer knows no `**flags: Unpack[SomeOptions]`: each key becomes an option of its own, and
    `of_resumer` becomes those that the resumer's program registers."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    if not own or own[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return command
    kinds = get_type_hints(get_args(own.pop().annotation)[0], include_extras=True)
    registered = _registered_options() if kinds.pop(OF_RESUMER, None) else None
    named = inspect.Parameter.KEYWORD_ONLY
    for name, kind in (kinds | (registered or {})).items():
        default = False if get_args(kind)[0] is bool else None
        own.append(inspect.Parameter(name, named, default=default, annotation=kind))
    ordered = sorted(own, key=lambda each: each.name in LAST_OPTIONS)
    keywords = [each.replace(kind=named) for each in ordered]

    @wraps(command)
    def called(**given: Any) -> None:
        if registered is not None:
            chosen = {name: given.pop(name) for name in registered}
            given[OF_RESUMER] = {name: value for name, value in chosen.items() if value is not None}
        command(**given)

    called.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return called


def _registered_options() -> dict[str, Any]:
    """None where none are registered, or they cannot be loaded; what needs them says why."""
    from interventions.errors import NoResumerError  # late: most commands have none
    from interventions.retry.contract import OPTIONS_GROUP, registered

    with suppress(NoResumerError):
        return dict(registered(OPTIONS_GROUP, "the options of the resumer") or {})
    return {}
