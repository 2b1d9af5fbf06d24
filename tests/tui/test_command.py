"""The command `monitor`: what it answers in a pipe, in a terminal, and to bad arguments."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from interventions import InterventionQueue
from tests import forked
from tests.answers import COMPLETE, QUESTION, script, served_flow
from tests.servers.model_server import ModelServer, hang, status
from tests.tui.scene import fill, put
from unified_flow.phases.errors import PhaseError

MONITOR = [sys.executable, "-m", "monitor"]


def _run(*arguments: str, **over: str) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [*MONITOR, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **over},
    )


def test_without_a_terminal_it_says_what_to_use_instead(home: Path) -> None:
    done = _run("--home", str(home))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "interventions list" in done.stderr


def test_version_and_help() -> None:
    assert _run("--version").stdout.startswith("monitor ")
    assert "--once" in _run("--help").stdout


def test_once_prints_the_first_screen(queue: InterventionQueue) -> None:
    fill(queue, 4)
    done = _run("--once", "--home", str(queue.home), COLUMNS="80", LINES="12")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 12
    assert "4/50 open" in lines[0]
    assert max(map(len, lines)) <= 80
    assert "JSONDecodeError" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_bundle_that_is_none(tmp_path: Path) -> None:
    done = _run("--once", "--from", str(tmp_path / "none.json"))
    assert done.returncode == 2
    assert "cannot read" in done.stderr


def test_a_setting_that_is_wrong(home: Path) -> None:
    (home / "unified_flow.toml").write_text("[queue]\nmax_size = 'many'\n")
    done = _run("--once", "--home", str(home))
    assert done.returncode == 2
    assert "max_size" in done.stderr
    (home / "unified_flow.toml").write_text('[monitor]\ntheme = "purple"\n')
    done = _run("--once", "--home", str(home))
    assert (done.returncode, "'purple' is none" in done.stderr) == (2, True)


def _as_a_terminal_would(inner: int) -> None:
    """A session of its own, of which this is the terminal: Ctrl-C reaches all that runs in it."""
    os.setsid()
    fcntl.ioctl(inner, termios.TIOCSCTTY, 0)


CRASH = """
import sys
from monitor.screens.tabs import OpenTab
def fail(self, now):
    secret = 'sk-' + 'verysecret'
    raise RuntimeError('a mistake [red]')
OpenTab.rows = fail
from monitor.__main__ import main
main(sys.argv[1:])
"""


def test_a_mistake_ends_with_its_own_code_and_tells_no_secrets(queue: InterventionQueue) -> None:
    put(queue)
    done = forked.run(
        [sys.executable, "-c", CRASH, "--home", str(queue.home), "--once"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "a mistake [red]" in done.stderr
    assert "verysecret" not in done.stderr
    assert "the queue is as it was" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--web", "--port", "99999"), "99999 is no port"),
        (("--once", "--port", "80"), "--port is for --web"),
        (("--once", "--web"), "not allowed with"),
        (("--once", "--from", "x.json"), "not allowed with"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    home: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = _run("--home", str(home), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]


def test_a_bundle_of_odd_values_is_one_line(tmp_path: Path) -> None:
    entry = {"id": "int_1_a", "created_at": "2026-01-01T00:00:00Z", "occurrences": "x"}
    bundle = tmp_path / "b.json"
    bundle.write_text(json.dumps({"intervention": entry}))
    done = _run("--once", "--from", str(bundle))
    assert (done.returncode, done.stdout) == (2, "")
    assert "occurrences is not a number" in done.stderr.splitlines()[-1]


class Terminal:
    """A real terminal 100 columns wide with the monitor in it."""

    def __init__(self, home: Path, **over: str) -> None:
        self._end, inner = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **over}
        self._process = subprocess.Popen(
            [*MONITOR, "--home", str(home)],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=env,
            preexec_fn=lambda: _as_a_terminal_would(inner),
        )
        os.close(inner)
        self.seen = b""

    def read_until(self, *wanted: bytes) -> None:
        """All of them, in whatever order."""
        start = len(self.seen)
        while left := [words for words in wanted if words not in self.seen[start:]]:
            ready = select.select([self._end], [], [], 30)[0]
            assert ready, f"{left!r} never came"
            self.seen += os.read(self._end, 65536)

    def press_until(self, wanted: bytes, *keys: bytes) -> None:
        """Each key in its turn, apart from the next: right after Esc one would be Alt with it, and
        a form that is still closing takes no key of the screen below."""
        start = len(self.seen)
        for key in itertools.islice(itertools.cycle(keys), 40):
            self.press(key)
            while select.select([self._end], [], [], 0.5)[0]:
                self.seen += os.read(self._end, 65536)
                if wanted in self.seen[start:]:
                    return
        raise AssertionError(f"{wanted!r} never came")

    def press(self, keys: bytes) -> None:
        os.write(self._end, keys)

    def end(self) -> None:
        self._process.terminate()

    def go_on(self) -> None:
        """What `fg` does, once it is stopped."""
        os.waitpid(self._process.pid, os.WUNTRACED)
        os.kill(self._process.pid, signal.SIGCONT)

    def code(self) -> int:
        # What it draws last has to be taken, or it could not end.
        while True:
            try:
                last = os.read(self._end, 65536)
            except OSError:
                break
            if not last:
                break
            self.seen += last
        os.close(self._end)
        return self._process.wait()


def test_the_editor_opens_and_the_screen_comes_back(
    queue: InterventionQueue, tmp_path: Path
) -> None:
    source = tmp_path / "mine.py"
    source.write_text("x = 1\n")
    put(queue, location=f"{source}:7", error_message="look at me")
    asked = tmp_path / "asked"
    editor = tmp_path / "editor.sh"
    editor.write_text(f'#!/bin/sh\necho "$@" > {asked}\necho EDITING\n')
    editor.chmod(0o700)
    terminal = Terminal(queue.home, VISUAL="", EDITOR=str(editor))
    terminal.read_until(b"look at me")
    terminal.press(b"e")
    terminal.read_until(b"EDITING")
    terminal.read_until(b"look at me")
    assert asked.read_text() == f"+7 {source}\n"
    terminal.press(b"q")
    assert terminal.code() == 0


@pytest.mark.parametrize(
    ("editor", "said"),
    [("nosuch-editor", b"did not start"), ("false", b"ended with code 1")],
)
def test_an_editor_that_fails_gives_the_screen_back(
    queue: InterventionQueue, tmp_path: Path, editor: str, said: bytes
) -> None:
    source = tmp_path / "mine.py"
    source.write_text("x = 1\n")
    put(queue, location=f"{source}:7", error_message="look at me")
    terminal = Terminal(queue.home, VISUAL=editor, EDITOR="")
    terminal.read_until(b"look at me")
    terminal.press(b"e")
    terminal.read_until(said)
    terminal.press(b"q")
    assert terminal.code() == 0


def test_ctrl_c_in_an_editor_is_the_editors(queue: InterventionQueue, tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text("x = 1\n")
    put(queue, location=f"{source}:7", error_message="look at me")
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\necho EDITING\nexec sleep 60\n")
    editor.chmod(0o700)
    terminal = Terminal(queue.home, VISUAL=str(editor))
    terminal.read_until(b"look at me")
    terminal.press(b"e")
    terminal.read_until(b"EDITING")
    terminal.press(b"\x03")
    terminal.read_until(b"look at me")
    terminal.press(b"q")
    assert terminal.code() == 0


@pytest.fixture
def hanging(home: Path, docs: Path, model_server: ModelServer) -> Path:
    """A home in which a turn failed, whose model does not answer any more."""
    model_server.script = script(synthesis=status(500), planner=COMPLETE)

    async def ask() -> None:
        async with served_flow(home, model_server.url, docs) as flow:
            with pytest.raises(PhaseError):
                await flow.process("s", QUESTION)

    asyncio.run(ask())
    model_server.script = script(synthesis=hang(), planner=COMPLETE)
    return home


def test_who_leaves_while_a_turn_runs_is_told_and_may_end_it(hanging: Path) -> None:
    terminal = Terminal(hanging)
    terminal.read_until(b"synthesis")
    terminal.press(b"t")
    terminal.read_until(b"the turn goes on from")
    terminal.press(b"\r")
    terminal.read_until("▸".encode())
    terminal.press(b"\x1b")
    terminal.read_until(b"no further one is begun")
    terminal.press_until(b"Ctrl-C ends it at once", b"\x1b", b"q")
    terminal.press(b"\x03")
    assert terminal.code() == 130
    assert b"Traceback" not in terminal.seen


def test_who_is_ended_gives_the_terminal_back(queue: InterventionQueue) -> None:
    put(queue, error_message="look at me")
    terminal = Terminal(queue.home)
    terminal.read_until(b"look at me")
    terminal.end()
    assert terminal.code() == 128 + signal.SIGTERM
    assert b"\x1b[?1049l" in terminal.seen[terminal.seen.index(b"look at me") :]


def test_who_goes_to_the_shell_and_comes_back_sees_it_all(queue: InterventionQueue) -> None:
    put(queue, error_message="look at me")
    terminal = Terminal(queue.home)
    terminal.read_until(b"look at me")
    terminal.press(b"\x1a")
    terminal.read_until(b"\x1b[?1049l")
    terminal.go_on()
    terminal.read_until(b"the monitor goes on", b"look at me")
    terminal.press(b"q")
    assert terminal.code() == 0


def test_a_terminal_that_can_only_write_lines_is_none(home: Path) -> None:
    terminal = Terminal(home, TERM="dumb")
    terminal.read_until(b"interventions list, or monitor --once")
    assert terminal.code() == 2


def test_without_colours_the_cursor_is_seen(queue: InterventionQueue) -> None:
    put(queue, error_message="look at me")
    terminal = Terminal(queue.home, NO_COLOR="1", COLORTERM="")
    terminal.read_until(b"look at me")
    reverse = rb"\x1b\[1;7m|\x1b\[7m|\x1b\[[0-9;]*;7[;m]"
    assert re.search(reverse, terminal.seen)
    terminal.press(b"q")
    assert terminal.code() == 0
