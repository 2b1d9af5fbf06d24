"""Commands in notes are printed so that they work, also for a home that was named."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interventions import InterventionQueue, InterventionRequest
from interventions.cli import SECTIONS
from interventions.entry import short_id
from interventions.home import queue_file
from interventions.plaintext import _NAMES
from tests import forked

HINTS = {
    "nowhere": (["show", "zzz"], 3),
    "closed": (["retry", "{id}"], 5),
    "again": (["resolve", "{id}", "-m", "x"], 5),
    "no ids": (["resolve", "-m", "x"], 2),
}


@pytest.fixture
def spaced(tmp_path: Path) -> Path:
    home = tmp_path / "a home"
    home.mkdir()
    return home


@pytest.mark.parametrize("what", HINTS)
def test_a_hint_works_as_it_is_printed(
    what: str, spaced: Path, make: Callable[..., InterventionRequest]
) -> None:
    queue = InterventionQueue(spaced)
    name = str(queue.put(make()).intervention_id)
    queue.resolve(name, "mended")
    words, code = HINTS[what]
    given = [word.format(id=short_id(name)) for word in words]
    home = ["--home", str(spaced)]
    refused = _run([*given, *home], spaced.parent)
    assert refused.returncode == code, refused.stderr
    hint = refused.stderr.partition("hint: ")[2]
    commands = re.findall(r"interventions (\w+[^;\n]*)", hint)
    assert commands
    for command in commands:
        told = _run(shlex.split(command), spaced.parent)
        assert told.returncode == 0, (command, told.stderr)
    assert "--home" not in _run(given, spaced).stderr, "nothing is added where none was named"


def test_hints_in_json_name_the_home_too(
    spaced: Path, make: Callable[..., InterventionRequest]
) -> None:
    queue = InterventionQueue(spaced)
    queue.put(make())
    first = str(queue.put(make(turn_id=7, error_message="gone")).intervention_id)
    home = ["--json", "--home", str(spaced)]
    refused = json.loads(_run(["retry", first, "--from", "nowhere", *home], spaced.parent).stdout)
    assert f"--home {shlex.quote(str(spaced))}" in refused["refused"]["hint"], refused
    queue_file(spaced).unlink()
    examined = json.loads(_run(["doctor", "--check", *home], spaced.parent).stdout)
    told = [found["todo"] for found in examined["findings"] if "interventions" in found["todo"]]
    assert told
    assert all(f"--home {shlex.quote(str(spaced))}" in todo for todo in told)


def _run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "interventions", *words]
    return forked.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_command_is_known() -> None:
    assert set(_NAMES.split("|")) == {name for names in SECTIONS.values() for name in names}
