"""What `--help` says: every command teaches by an example, every argument has its words."""

from __future__ import annotations

import click
import pytest
import typer.main
from typer.testing import CliRunner

from unified_flow.cli.app import app

runner = CliRunner()
ROOT = typer.main.get_command(app)
ELSEWHERE = ("interventions", "monitor")


def commands(group: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(group, click.Group):
        return [path]
    return [
        found
        for name, each in members(group).items()
        if (*path, name)[0] not in ELSEWHERE
        for found in commands(each, (*path, name))
    ]


def members(group: click.Group) -> dict[str, click.Command]:
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


@pytest.mark.parametrize("group", ["tools", "sessions", "turns", "collections", "memory", "config"])
def test_a_group_begins_with_an_example(group: str) -> None:
    outcome = runner.invoke(app, [group, "--help"], terminal_width=100)
    assert f"Try:  unified-flow {group if group != 'collections' else 'index'}" in outcome.output


@pytest.mark.parametrize("path", commands(ROOT), ids=" ".join)
def test_help_teaches(path: tuple[str, ...]) -> None:
    outcome = runner.invoke(app, [*path, "--help"], terminal_width=100)
    assert outcome.exit_code == 0
    assert f"unified-flow {' '.join(path)}" in outcome.output.split("Usage:")[1].partition("\n")[2]
    command: click.Command = ROOT
    for name in path:
        assert isinstance(command, click.Group)
        command = members(command)[name]
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words = str(getattr(parameter, "help", "") or "")
            assert words
            assert words.split()[0] in outcome.output
