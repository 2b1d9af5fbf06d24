"""One verb for one thing and the same options everywhere, in all commands of the three programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer.main
from typer.testing import CliRunner

from interventions.cli import app as interventions
from unified_flow.cli.app import app

SHARED = {"list", "show", "add", "set", "delete", "prune", "export", "import", "run", "serve"}
# What has a verb of its own in the field, or in the queue.
OWN = {
    "": {"ask", "chat", "resume", "replay", "index", "search", "trace", "init", "doctor", "mcp"}
    | {"worker", "workers"},
    "turns": {"abandon", "recover", "salvage"},
    "rules": {"test"},
    "config": {"schema"},
    "eval": {"compare"},
    "shared": {"migrate", "check", "import"},
    "interventions": {
        *("resolve", "dismiss", "snooze", "reopen", "undo", "assign", "retry", "schema"),
        *("similar", "history", "health", "report", "drain", "doctor", "watch"),
    },
}
# They run until they are stopped, and have no one object to print.
STAYING = {("chat",), ("serve",), ("worker",), ("mcp",), ("model", "serve"), ("monitor",)}
ENDLESS = {"list", "history"}  # what grows takes --limit
SHORT = {("collections", "list"), ("tools", "list"), ("grants", "list"), ("rules", "list")}
runner = CliRunner()


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def options_of(command: click.Command) -> set[str]:
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {name for each in options for name in each.opts}


def test_every_command_has_a_known_verb_and_the_common_options() -> None:
    for path, command in leaves(typer.main.get_command(app)):
        if path == ("monitor",):
            continue
        group = path[0] if len(path) > 1 else ""
        assert path[-1] in SHARED | OWN.get(group, set()), path
        taken = options_of(command)
        assert {"--home", "-V", "--version"} <= taken, path
        assert path in STAYING or taken & {"--json", "--jsonl"}, path
        if path[-1] in ENDLESS and path not in SHORT:
            assert "--limit" in taken, path
        assert not taken & {"--to", "--forget", "--count", "--stats", "--remove"}, path
        if "--output" in taken:
            assert "-o" in taken, path


@pytest.mark.parametrize(
    "words",
    [
        ["--home", "HOME", "--json", "turns", "list"],
        ["turns", "--home", "HOME", "--json", "list"],
        ["turns", "list", "--home", "HOME", "--json"],
        ["--json", "turns", "list", "--home", "HOME"],
        ["--home", "HOME", "eval", "--json", "list"],
        ["--home", "HOME", "--json", "interventions", "list"],
        ["--home", "elsewhere", "turns", "list", "--home", "HOME", "--json"],
    ],
    ids=" ".join,
)
def test_home_and_json_work_before_and_after_the_command(home: Path, words: list[str]) -> None:
    (home / "unified_flow.toml").write_text("")
    outcome = runner.invoke(app, [str(home) if word == "HOME" else word for word in words])
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("{")


def test_a_hint_names_the_home_wherever_it_was_given(home: Path) -> None:
    for words in (["--home", str(home), "memory"], ["memory", "--home", str(home)]):
        outcome = runner.invoke(app, [*words, "delete", "m1"])
        assert outcome.exit_code == 3
        assert f"unified-flow memory list --home {home}" in outcome.stderr


@pytest.mark.parametrize("path", [("chat",), ("serve",), ("monitor",)], ids=" ".join)
def test_what_prints_no_object_refuses_json_on_both_sides(path: tuple[str, ...]) -> None:
    assert runner.invoke(app, ["--json", *path]).exit_code == 2
    if path != ("monitor",):
        assert runner.invoke(app, [*path, "--json"]).exit_code == 2


@pytest.mark.parametrize(
    "words", [["-V"], ["ask", "--version"], ["tools", "-V"], ["rules", "list", "-V"]]
)
def test_the_version_is_told_on_both_sides(words: list[str]) -> None:
    assert runner.invoke(app, words).output.startswith("unified-flow ")


def test_the_queue_and_the_monitor_take_the_same() -> None:
    for words in (["-V"], ["list", "-V"]):
        assert runner.invoke(interventions, words).output.startswith("interventions ")
    for option in ("-V", "--version"):
        shown = subprocess.run(
            [sys.executable, "-m", "monitor", option], capture_output=True, text=True, check=False
        )
        assert shown.stdout.startswith("monitor ")


def test_last_is_the_newest_turn_session_and_request(home: Path) -> None:
    asked = [*("--home", str(home), "--json", "ask", "--session"), "ros", "What is 2 + 3?"]
    assert runner.invoke(app, asked).exit_code == 0
    for words in (
        ["turns", "show", "last"],
        ["turns", "list", "--session", "last"],
        ["sessions", "show", "last"],
        ["sessions", "export", "last"],
        ["trace", "last"],
        ["ask", "--session", "last", "And 3 + 4?"],
        ["ask", "--last", "And 4 + 5?"],
    ):
        outcome = runner.invoke(app, ["--home", str(home), "--json", *words])
        assert outcome.exit_code == 0, words
        assert '"ros"' in outcome.stdout, words
    assert runner.invoke(app, ["--home", str(home), "replay", "last"]).exit_code == 0
    by_number = runner.invoke(app, ["--home", str(home), "trace", "1"])
    assert (by_number.exit_code, "turns show 1" in by_number.output) == (3, True)
