"""Our commands in the process of the test, at a third of what a process of their own costs: for all
that is known of a command by its arguments, its environment, what it writes and its exit code.
One that is ended, stands at a terminal or is about processes is for `tests.forked`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from typer.testing import CliRunner

from interventions.cli import app as interventions
from unified_flow.cli.app import app as unified_flow

APPS = {"unified-flow": unified_flow, "interventions": interventions}


def run(
    command: str, *words: object, home: Path, **env: str | None
) -> subprocess.CompletedProcess[str]:
    """`command` by its name or its module's; a variable that is None is not set."""
    name = command.replace("_", "-")
    given = list(map(str, words))
    env["UNIFIED_FLOW_HOME"] = str(home)
    done = CliRunner().invoke(APPS[name], given, env=env, prog_name=name)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess([name, *given], done.exit_code, done.stdout, done.stderr)
