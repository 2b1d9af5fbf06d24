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


def groups(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inside = [
        (name, each) for name, each in members(group).items() if isinstance(each, click.Group)
    ]
    return [path, *(found for name, each in inside for found in groups(each, (*path, name)))]


assert isinstance(ROOT, click.Group)


@pytest.mark.parametrize("path", groups(ROOT), ids=" ".join)
def test_every_command_of_a_group_has_one_whole_line(path: tuple[str, ...]) -> None:
    """In a terminal of 80 columns, under the headings of the program."""
    outcome = runner.invoke(app, [*path, "--help"], terminal_width=80)
    group: click.Command = ROOT
    for name in path:
        assert isinstance(group, click.Group)
        group = members(group)[name]
    assert isinstance(group, click.Group)
    lines = [line.split(maxsplit=1) for line in outcome.output.splitlines() if line[:2] == "  "]
    shown = {line[0]: line[1] for line in lines if len(line) == 2}
    for name in members(group):
        assert shown[name].endswith("."), name
        assert "..." not in shown[name]


def test_the_program_has_its_commands_under_headings() -> None:
    output = runner.invoke(app, ["--help"], terminal_width=80).output
    places = [
        output.index(f"\n{heading}:\n")
        for heading in (
            *("Ask", "Documents", "When it breaks", "Service", "Guardrails", "Housekeeping"),
        )
    ]
    assert places == sorted(places)
    assert places[2] < output.index("\n  interventions ") < places[3]


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
