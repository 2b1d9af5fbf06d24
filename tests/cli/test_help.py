"""What `--help` says: every command teaches by an example, every argument has its words."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
import typer.main
from typer.testing import CliRunner

from unified_flow.cli.app import app

runner = CliRunner()
ROOT = typer.main.get_command(app)
ELSEWHERE = ("interventions", "monitor")


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Groups too, each before its commands."""
    yield path, command
    for name, each in members(command).items() if isinstance(command, click.Group) else ():
        yield from commands(each, (*path, name))


def members(group: click.Group) -> dict[str, click.Command]:
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def test_every_command_of_a_group_has_one_whole_line() -> None:
    """In a terminal of 80 columns, under the headings of the program."""
    for path, group in commands(ROOT):
        if not isinstance(group, click.Group):
            continue
        outcome = runner.invoke(app, [*path, "--help"], terminal_width=80)
        lines = [line.split(maxsplit=1) for line in outcome.output.splitlines() if line[:2] == "  "]
        shown = {line[0]: line[1] for line in lines if len(line) == 2}
        for name in members(group):
            assert shown[name].endswith("."), (path, name)
            assert "..." not in shown[name], (path, name)


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


def test_help_teaches() -> None:
    for path, command in commands(ROOT):
        if isinstance(command, click.Group) or path[0] in ELSEWHERE:
            continue
        outcome = runner.invoke(app, [*path, "--help"], terminal_width=100)
        assert outcome.exit_code == 0, path
        after_usage = outcome.output.split("Usage:")[1].partition("\n")[2]
        assert f"unified-flow {' '.join(path)}" in after_usage
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                words = str(getattr(parameter, "help", "") or "")
                assert words, path
                assert words.split()[0] in outcome.output, path
