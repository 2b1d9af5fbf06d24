"""What the commands of both programs have in common: they are loaded when they are called, take the
same options on both sides of the command, and end with an exit code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args, get_type_hints

import click
import typer
from typer.core import TyperCommand, TyperGroup

from interventions.cli.terminal import exits

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
LAST_OPTIONS = ("as_json", "as_jsonl", "home")

# Typer escapes the brackets of its help for Rich, also where it prints without Rich. Rich costs as
# much as the rest of the start-up, and help reads as well without it.
typer.core.HAS_RICH = False


class Command(TyperCommand):
    """One command; what goes wrong in it becomes a line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        with exits():
            return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """Loads a command's module when the command is called: building all of them takes longer than
    running one. `--home` and `--json` before a command mean the same as after it.

    `table` has, by name, where a command's function is ("module:function" in `package`), or the
    command itself. `default` is the command that is meant where none is named.
    """

    package: ClassVar[str] = "interventions.cli"
    program: ClassVar[str] = "interventions"
    leaf_class: ClassVar[type[TyperCommand]] = Command
    table: Mapping[str, str | click.Command] = {}
    default: str | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"callback": None, "rich_markup_mode": None})

    @classmethod
    def of(
        cls, name: str, help_text: str, table: Mapping[str, str], *, default: str | None = None
    ) -> CommandGroup:
        group = cls(name=name, help=help_text, no_args_is_help=True, context_settings=HELP_OPTIONS)
        group.table, group.default = table, default
        return group

    @classmethod
    def app(cls, help_text: str) -> typer.Typer:
        """The program itself, of which this class has the table."""
        app = typer.Typer(
            name=cls.program,
            cls=cls,
            help=help_text,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
            context_settings=HELP_OPTIONS,
        )
        app.callback()(lambda: None)  # without one Typer makes no group
        return app

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.table.get(cmd_name)
        if not isinstance(found, str):
            return found
        module, _, function = found.partition(":")
        loaded = getattr(import_module(f"{self.package}.{module}"), function)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name, cls=self.leaf_class)(_with_shared_options(loaded))
        command = typer.main.get_command(alone)
        command.params.append(self._version_option(hidden=True))
        return command

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        place = "Folder that holds shared_state/ and logs/; also after the command."
        home = click.Option(["--home"], type=click.Path(path_type=Path), help=place)
        as_json = click.Option(
            ["--json", "as_json"], is_flag=True, help="Print JSON; also after the command."
        )
        return [home, as_json, self._version_option(), *super().get_params(ctx)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, self._with_default(args))
        given = {name: ctx.params[name] for name in ("home", "as_json") if ctx.params.get(name)}
        if given:
            ctx.default_map = dict.fromkeys(self.table, given)
        return rest

    def _with_default(self, args: list[str]) -> list[str]:
        at = 0
        while at < len(args) and args[at].partition("=")[0] in ("--home", "--json"):
            at += 2 if args[at] == "--home" else 1
        is_named = not args[at:] or args[at] in {*self.table, "-h", "--help", "-V", "--version"}
        return args if is_named or not self.default else [*args[:at], self.default, *args[at:]]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        taken = {each.name for each in command.get_params(ctx)} if command is not None else set()
        if ctx.params.get("as_json") and "as_json" not in taken and not ctx.resilient_parsing:
            ctx.fail(f"{name} prints no JSON: leave out --json")
        return name, command, rest

    def _version_option(self, *, hidden: bool = False) -> click.Option:
        return click.Option(
            ["-V", "--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=self._print_version,
            help="Print the version.",
        )

    def _print_version(self, ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            from importlib.metadata import version

            typer.echo(f"{self.program} {version('unified-flow')}")
            ctx.exit()


class RegisteredOptions(NamedTuple):
    """In the annotation of a parameter that takes a mapping: the options that another program
    registers under this entry point group, each as `name: Annotated[type, typer.Option(...)]`."""

    group: str


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Typer knows no `**chosen: Unpack[SomeOptions]`: each key becomes an option of its own, as do
    those of RegisteredOptions."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    keys: dict[str, Any] = {}
    if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:
        keys |= get_type_hints(get_args(own.pop().annotation)[0], include_extras=True)
    registered = {each.name: _registered_options(each) for each in own}
    own = [each for each in own if registered[each.name] is None]
    mappings = {name: options for name, options in registered.items() if options is not None}
    if not keys and not mappings:
        return command
    for options in mappings.values():
        keys |= options
    shared = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for key, kind in keys.items()
    ]
    first = [each for each in own if each.name not in LAST_OPTIONS]
    last = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in own
        if each.name in LAST_OPTIONS
    ]

    @wraps(command)
    def called(**given: Any) -> None:
        for name, options in mappings.items():
            taken = {key: given.pop(key) for key in options}
            given[name] = {key: value for key, value in taken.items() if value is not None}
        command(**given)

    called.__signature__ = inspect.Signature([*first, *shared, *last])  # type: ignore[attr-defined]
    return called


def _registered_options(parameter: inspect.Parameter) -> dict[str, Any] | None:
    """None for an ordinary parameter. Where nothing is registered, or it cannot be loaded, there
    are no options; what needs it says why."""
    marks = getattr(parameter.annotation, "__metadata__", ())
    mark = next((each for each in marks if isinstance(each, RegisteredOptions)), None)
    if mark is None:
        return None
    from interventions.errors import NoResumerError  # late: most commands have none
    from interventions.retry.entry_points import registered

    with suppress(NoResumerError):
        return dict(registered(mark.group, "the options of the resumer") or {})
    return {}
