"""The commands of `unified-flow`: their table, and what all of them have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import typer
from typer.core import TyperCommand, TyperGroup

from interventions.cli.main import app as interventions
from unified_flow.cli.exits import exits

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
LAST_OPTIONS = ("as_json", "as_jsonl", "home")


class Command(TyperCommand):
    """One command; what goes wrong in it becomes a line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        with exits():
            return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """Loads a command's module when the command is called. `--home` and `--json` before a command
    mean the same as after it.

    `table` has, by name, where a command's function is, or the command itself. `default` is the
    command that is meant where none is named.
    """

    def __init__(
        self,
        *,
        table: Mapping[str, str | click.Command] | None = None,
        default: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings | {"callback": None})
        self._table = COMMANDS if table is None else table
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self._table.get(cmd_name)
        if not isinstance(found, str):
            return found
        module, _, function = found.partition(":")
        loaded = getattr(import_module(f"unified_flow.cli.{module}"), function)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name, cls=Command)(_with_shared_options(loaded))
        command = typer.main.get_command(alone)
        command.params.append(_version_option(hidden=True))
        return command

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        place = "Folder that holds shared_state/ and logs/; also after the command."
        home = click.Option(["--home"], type=click.Path(path_type=Path), help=place)
        as_json = click.Option(
            ["--json", "as_json"], is_flag=True, help="Print JSON; also after the command."
        )
        return [home, as_json, _version_option(), *super().get_params(ctx)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._default is not None:
            args = self._with_default(args)
        rest = super().parse_args(ctx, args)
        given = {name: ctx.params[name] for name in ("home", "as_json") if ctx.params.get(name)}
        if given:
            ctx.default_map = dict.fromkeys(self._table, given)
        return rest

    def _with_default(self, args: list[str]) -> list[str]:
        at = 0
        while at < len(args) and args[at].partition("=")[0] in ("--home", "--json"):
            at += 2 if args[at] == "--home" else 1
        is_named = not args[at:] or args[at] in {*self._table, "-h", "--help", "-V", "--version"}
        return args if is_named else [*args[:at], str(self._default), *args[at:]]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        wants_json = bool(ctx.params.get("as_json")) and not ctx.resilient_parsing
        taken = {each.name for each in command.get_params(ctx)} if command is not None else set()
        if wants_json and command is not None and "as_json" not in taken:
            ctx.fail(f"{name} prints no JSON: leave out --json")
        return name, command, rest


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Typer knows no `**chosen: Unpack[FlowOptions]`: each key becomes an option of its own."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    if not own or own[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return command
    keys = get_type_hints(get_args(own.pop().annotation)[0], include_extras=True)
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
        command(**given)

    called.__signature__ = inspect.Signature([*first, *shared, *last])  # type: ignore[attr-defined]
    return called


def _version_option(*, hidden: bool = False) -> click.Option:
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        hidden=hidden,
        callback=_print_version,
        help="Print the version.",
    )


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from unified_flow import __version__

        typer.echo(f"unified-flow {__version__}")
        ctx.exit()


def _group(
    name: str, help_text: str, table: Mapping[str, str], *, default: str | None = None
) -> CommandGroup:
    return CommandGroup(
        name=name,
        help=help_text,
        table=table,
        default=default,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=HELP_OPTIONS,
    )


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

COMMANDS: Mapping[str, str | click.Command] = {
    "ask": "ask:ask",
    "chat": "chat.command:chat",
    "resume": "resume:resume",
    "replay": "replay:replay",
    "index": "index:index",
    "search": "search:search",
    "serve": "serve:serve",
    "collections": _group(
        "collections",
        "The named indexes of this project.\n\n"
        "Try:  unified-flow index manuals/ --collection manuals",
        {
            "list": "collections:list_collections",
            "show": "collections:show_collection",
            "delete": "collections:delete_collection",
        },
    ),
    "turns": _group(
        "turns",
        "What was asked, and how far each turn came.\n\nTry:  unified-flow turns show 12",
        {
            "list": "turns:list_turns",
            "show": "turns:show_turn",
            "abandon": "turns:abandon",
            "prune": "turns:prune",
        },
    ),
    "trace": "trace:trace",
    "tools": _group(
        "tools",
        "The tools of a turn: built in, your own, and those of MCP servers.\n\n"
        "Try:  unified-flow tools call calculate expression='17 * 3'",
        {
            "list": "tools:list_tools",
            "call": "tools:call_tool",
        },
    ),
    "grants": _group(
        "grants",
        "What people have allowed tools to do.\n\nTry:  unified-flow grants list",
        {"list": "tools:list_grants", "delete": "tools:delete_grants"},
    ),
    "sessions": _group(
        "sessions",
        "Conversations that were kept: what was asked and answered, session by session.\n\n"
        "Try:  unified-flow sessions show ros",
        {
            "list": "sessions:list_sessions",
            "show": "sessions:show_session",
            "export": "sessions:export_session",
            "delete": "sessions:delete_session",
        },
    ),
    "rules": _group(
        "rules",
        "Flagged words and phrases, and where anything is answered, for each user.",
        {
            "list": "guardrails:list_rules",
            "add": "guardrails:add",
            "delete": "guardrails:delete",
            "set": "guardrails:set_switches",
            "import": "guardrails:import_rules",
            "test": "guardrails:try_rules",
        },
    ),
    "decisions": _group(
        "decisions",
        "What was decided about each message: answered, ignored, or left to a person.",
        {"list": "guardrails:list_decisions"},
    ),
    "guardrails": _group(
        "guardrails", "What the guardrails did.", {"show": "guardrails:show_counts"}
    ),
    "memory": _group(
        "memory",
        "What is remembered of a user from turn to turn.\n\nTry:  unified-flow memory list",
        {"list": "memory:list_memories", "add": "memory:add", "delete": "memory:delete"},
    ),
    "init": "config:init",
    "config": _group(
        "config",
        "What the settings are, and who said so.\n\nTry:  unified-flow config show",
        {"show": "config:show", "schema": "config:schema"},
    ),
    "model": _group("model", "The local model (extra: local).", {"serve": "serve:serve_model"}),
    "eval": _group(
        "eval",
        "How good the answers are: a set of questions through the same flow as `ask`.\n\n"
        "unified-flow eval questions.jsonl --docs docs/     (the same as eval run)",
        {
            "run": "evaluate:run",
            "compare": "evaluate:compare",
            "list": "evaluate:list_runs",
            "show": "evaluate:show",
        },
        default="run",
    ),
    "doctor": "doctor:doctor",
    "interventions": typer.main.get_group(interventions),
    "monitor": MONITOR,
}

app = typer.Typer(
    name="unified-flow",
    cls=CommandGroup,
    help="Ask your documents a question; when a phase fails the turn stops and a person is told."
    "\n\nTry:  unified-flow ask 'How do topics differ from services?' --docs docs/",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP_OPTIONS,
)


@app.callback()
def _main() -> None:
    """Typer makes a group only of an application that has this."""
