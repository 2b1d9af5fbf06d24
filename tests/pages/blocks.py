"""The code blocks of a page, run one after the other in a project as its reader has it.

`sh` is run, `console` is run and compared with what the page shows, `python` is run, `toml` has to
be settings. A block whose first line is a comment with a file's name is written there instead.
In what a page shows a line of "…" stands for any number of lines, "…" at the end of one for its
rest.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import randrange
from shutil import copytree
from time import monotonic, sleep

from tests import forked
from unified_flow.config.settings import load

ROOT = Path(__file__).parents[2]
STAND_INS = Path(__file__).parent / "bin"  # what installs, serves models or takes long
BLOCK = re.compile(r"^```(sh|console|python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w/.-]+\.(?:py|toml|md|txt|jsonl))\n")
SERVER = "127.0.0.1:11434"
SERVICE = "localhost:8000"
LIMIT_S = 120
VARIES = (
    (r"int_\d{8}_\d{6}_[0-9a-f]{6}", "ID"),
    (r"\b\d{4}-\d\d-\d\d-[0-9a-f]{12}\b", "REQUEST"),
    (r"\b[0-9a-f]{6}\b", "ID"),
    (r"\.md:\d+", ".md:N"),
    (r"\bturns? (show )?\d+", "turn N"),
    (r"(under )?\b\d+(\.\d+)? ?m?s\b", "TIME"),
    (r"127\.0\.0\.1:\d+", SERVER),
    (r" +", " "),
)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in BLOCK.finditer(text)
    ]


class Project:
    """A folder with the documents and examples of the repository, and what blocks leave in it."""

    def __init__(self, place: Path, model_url: str, **variables: str) -> None:
        self.place = place / "project"
        self.place.mkdir()
        for name in ("architecture", "examples", "unified_flow/phases/recipes"):
            copytree(ROOT / name, self.place / name)
        self._port = free_port()
        self._model = model_url.removeprefix("http://").partition("/")[0]
        bin_folders = [str(STAND_INS), str(Path(sys.executable).parent), os.environ["PATH"]]
        self._environment = {
            "PATH": os.pathsep.join(bin_folders),
            "HOME": str(place),
            "COLUMNS": "96",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "REPOSITORY": str(ROOT),
            "FORKING": forked.address(),
            "UNIFIED_FLOW_SERVE__PORT": str(self._port),
            **variables,
        }
        self._started: list[int] = []

    def run(self, block: Block) -> None:
        """Raises AssertionError for what fails, or is not what the page shows."""
        named = FILE.match(block.text)
        text = block.text.replace(SERVER, self._model)
        text = text.replace(SERVICE, f"localhost:{self._port}")
        if named:
            path = self.place / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.partition("\n")[2] if path.suffix == ".md" else text)
        elif block.language == "toml":
            self._check_settings(text)
        elif block.language == "python":
            self._shown(f"{sys.executable} -c '{text.replace(chr(39), QUOTE)}'")
        elif block.language == "sh":
            self._shown(text)
        else:
            for command, lines in told_in(text):
                compare(command, lines, self._shown(command, fails=True).splitlines())

    def _check_settings(self, text: str) -> None:
        home = self.place / "settings"
        home.mkdir(exist_ok=True)
        (home / "unified_flow.toml").write_text(text)
        tomllib.loads(text)
        load(home)

    def _shown(self, script: str, *, fails: bool = False) -> str:
        """What it prints, on both streams. What a page shows of a command may be its failure."""
        output = self.place.parent / f"output-{len(self._started)}"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=self.place,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process.pid)
        code = process.wait(LIMIT_S)
        shown = output.read_text(encoding="utf-8")
        assert code == 0 or fails, f"{script}\n{shown}"
        return shown

    def wait_for_service(self) -> None:
        end = monotonic() + 30
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
                return
            assert monotonic() < end, "the service does not answer"
            sleep(0.05)

    def close(self) -> None:
        """End what blocks have left running, and wait until it has ended."""
        for group in self._started:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        end = monotonic() + 30
        while any(map(runs, self._started)):
            assert monotonic() < end, "what a block has started does not end"
            sleep(0.05)


def runs(group: int) -> bool:
    """Whether a process of the group is left."""
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def free_port() -> int:
    """One that the system gives to no client meanwhile."""
    while True:
        port = randrange(20000, 30000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


QUOTE = "'\\''"


def told_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, and the lines that the page shows for it."""
    for part in ("\n" + text).split("\n$ ")[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, lines


def compare(command: str, told: list[str], said: list[str]) -> None:
    """Answers and notes go two ways, and their order on a terminal is not fixed."""
    found = [plain(line) for line in said if line.strip()]
    for line in filter(None, map(plain, told)):
        fits = line.removesuffix("…")
        known = [each for each in found if each.startswith(fits) and (each == line or line != fits)]
        assert known or not fits, f"{command} does not print {line!r}, but:\n" + "\n".join(said)
    if "…" not in told:
        assert len(found) == len([line for line in told if line.strip()]), "\n".join(said)


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, word in VARIES:
        line = re.sub(pattern, word, line)
    return line.strip()
