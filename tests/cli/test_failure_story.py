"""README's failure story, replayed: its second half says what the commands print."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests import forked
from tests.answers import DRAFT, QUESTION, every_phase_by_model, script
from tests.servers.model_server import ModelServer, status

pytestmark = every_phase_by_model

README = Path(__file__).parents[2] / "README.md"
PROMPT = "$ "
ANSWER = "A failure waits in the queue for a person."


def story() -> list[tuple[str, list[str]]]:
    """(command, what it prints) of the block that begins with `interventions list`."""
    blocks = re.findall(r"^```console\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (each for each in blocks if each.startswith("$ interventions list\n"))
    told = []
    for part in ("\n" + block).split("\n" + PROMPT)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        told.append((command, lines))
    return told


def alike(lines: list[str], short_id: str) -> list[str]:
    """Without what differs from run to run: the id, the moment in it, and how long ago."""
    text = "\n".join(lines).replace(short_id, "ID")
    return re.sub(r"int_\d+_\d+_", "int_", re.sub(r" \ds ", " 0s ", text)).split("\n")


def test_its_commands_print_what_it_says(home: Path, docs: Path, model_server: ModelServer) -> None:
    def run(command: str) -> list[str]:
        name, *words = re.findall(r'"[^"]*"|\S+', command)
        module = name.replace("-", "_")
        done = forked.run(
            [sys.executable, "-m", module, *(word.strip('"') for word in words)],
            env={
                **os.environ,
                "UNIFIED_FLOW_HOME": str(home),
                "COLUMNS": "96",
                "PYTHONUNBUFFERED": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        shown: str = done.stdout + done.stderr
        return shown.rstrip("\n").split("\n")

    model_server.script = script(synthesis=status(500, "the model ran out of memory"))
    served = f"--docs {docs} --model m --base-url {model_server.url}"
    run(f'unified-flow ask "{QUESTION}" {served}')
    model_server.script = script()
    (list_command, listed), *rest = story()
    written, found = listed[1].split()[0], run(list_command)
    own = found[1].split()[0]
    assert alike(found, own)[0].split() == alike(listed, written)[0].split()
    assert alike(found, own)[1].split()[:8] == alike(listed, written)[1].split()[:8]
    for command, lines in rest:
        said = alike(run(command.replace(written, own)), own)
        # Results and notes go two ways, and stand together on a terminal.
        told = [DRAFT.response if line == ANSWER else line for line in alike(lines, written)]
        assert sorted(said) == sorted(told), command
