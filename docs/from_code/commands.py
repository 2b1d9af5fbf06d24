"""The commands, from the program itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from from_code.markdown import plain, table
from unified_flow.cli.app import Commands


def commands() -> str:
    root = click.Context(Commands(name="unified-flow"), info_name="unified-flow")
    return "\n\n".join(_commands(root, 2))


def _commands(context: click.Context, level: int) -> Iterator[str]:
    command = context.command
    yield f"{'#' * level} {context.command_path}"
    yield _help(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(click.Context(inner, info_name=name, parent=context), level + 1)
        return
    yield f"```text\n{' '.join(command.get_usage(context).split())}\n```"
    shown = (each for each in command.get_params(context) if each.name != "help")
    rows = [record for each in shown if (record := each.get_help_record(context))]
    yield table(("option", "meaning"), ((f"`{name}`", text) for name, text in rows))


def _help(command: click.Command) -> str:
    """Paragraphs as they are; after a `\\b` the lines are examples."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        f"```text\n{each.removeprefix(chr(8)).strip()}\n```"
        if each.startswith("\b")
        else plain(each)
        for each in paragraphs
    )
