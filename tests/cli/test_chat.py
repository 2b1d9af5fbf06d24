"""`unified-flow chat`, through a pipe and at a real terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pexpect
import pytest
from rich.console import Console

from interventions import InterventionQueue
from tests import forked
from tests.answers import COMPLETE, DRAFT, every_phase_by_model, script
from tests.servers.model_server import ModelServer, hang, status
from unified_flow.cli.live import TEXT_LINES, LivePhases, paused
from unified_flow.phases import NAMES
from unified_flow.turns.events import PhaseCompleted, TextArrived
from unified_flow.turns.results import Draft, Plan, ToolRequest

CHAT = [sys.executable, "-m", "unified_flow", "chat"]
TEXT = """# Robots

A topic is a named bus over which nodes exchange messages.

A service is a call from one node to another, with an answer.
"""


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    docs = tmp_path / "manual"
    docs.mkdir()
    (docs / "robots.md").write_text(TEXT)
    return docs


def piped(home: Path, *args: str, say: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = forked.run(
        [*CHAT, "--home", str(home), *args],
        input=say,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def served(server: ModelServer) -> list[str]:
    return ["--model", "test-model", "--base-url", server.url]


def test_a_follow_up_shows_what_it_was_taken_to_mean(home: Path, folder: Path) -> None:
    done = piped(home, "--docs", str(folder), say="What is a topic?\nWhat is it used for?\n")
    shown = [line for line in done.stderr.splitlines() if line.startswith("understood as")]
    assert shown == ["understood as: What is it used for? (topic)"]
    asked = [sys.executable, "-m", "unified_flow", "ask", "--home", str(home), "--json"]
    for question, meant in (("Is it named?", "Is it named? (topic)"), ("What is a topic?", None)):
        again = forked.run(
            [*asked, "--session", "last", question], capture_output=True, text=True, check=True
        )
        assert json.loads(again.stdout)["understood_as"] == meant


def test_a_conversation_from_a_pipe_understands_what_it_refers_to(home: Path, folder: Path) -> None:
    say = "What is a topic?\nWho exchanges messages over it?\n/session\n"
    done = piped(home, "--docs", str(folder), "--session", "ros", say=say)
    assert done.stdout.count("named bus") >= 2
    assert "manual/robots.md:3" in done.stdout
    assert "session ros" in done.stderr
    after = piped(home, "--session", "last", say="/session\n")
    assert "session ros" in after.stderr


def test_a_failure_is_mended_and_retried_without_leaving(home: Path, folder: Path) -> None:
    with ModelServer(script(synthesis=[status(500), DRAFT])) as server:
        args = ["--docs", str(folder), *served(server)]
        done = piped(home, *args, say="What is a topic?\n/show\n/retry mended\n/retry\n")
    assert "synthesis failed: llm_error" in done.stderr
    assert "resolve" in done.stdout, "/show tells how to go on"
    assert "A topic is a named bus." in done.stdout
    assert "resolved, verified" in done.stderr
    assert "nothing to retry" in done.stderr
    assert InterventionQueue(home).open_count() == 0


def test_a_pipe_that_ends_with_a_failure_says_so_in_the_exit_code(home: Path) -> None:
    with ModelServer(script(synthesis=status(500))) as server:
        done = piped(home, *served(server), say="What is a topic?\n", code=1)
    assert "/retry" in done.stderr


@every_phase_by_model
def test_a_chat_that_ended_with_a_failure_is_continued_and_retried(home: Path) -> None:
    with ModelServer(script(synthesis=[DRAFT, status(500), DRAFT], planner=COMPLETE)) as server:
        piped(home, *served(server), "--session", "old", say="What is a topic?\n")
        piped(home, *served(server), "--session", "ros", say="What is a service?\n", code=1)
        done = piped(home, *served(server), "--session", "last", say="/session\n/retry\n")
    assert "not answered yet: What is a service?" in done.stderr
    assert "session ros" in done.stderr
    assert "resolved, verified" in done.stderr
    assert "A topic is a named bus." in done.stdout


def test_the_phases_are_taken_away_for_a_question_and_come_back_below_it() -> None:
    out = StringIO()
    with LivePhases(Console(file=out, force_terminal=True, width=80)) as view:
        view(TextArrived(phase="synthesis", text="It begins."))
        with paused():
            before = out.getvalue()
        after = out.getvalue().removeprefix(before)
    erase = "\x1b[2K"
    assert before[before.rindex(NAMES[-1]) :].count(erase) >= len(NAMES)
    assert NAMES[0] in after
    assert erase not in after[: after.index(NAMES[0])], "the question stays"


def test_the_answer_grows_on_the_screen_while_it_is_written_and_goes_with_its_phase() -> None:
    out = StringIO()

    def screen() -> str:
        with paused():
            before = out.getvalue()
        return out.getvalue().removeprefix(before)

    written = [f"line {number} of the answer" for number in range(20)]
    with LivePhases(Console(file=out, force_terminal=True, width=80)) as view:
        for shown in (written[:1], written[:2], written):
            view(TextArrived(phase="synthesis", text="\n".join(shown)))
            lines = re.findall(r"line \d+ of the answer", screen())
            assert lines == shown[-TEXT_LINES:]
        view(PhaseCompleted(phase="synthesis", visit=1, output=None, duration_ms=1.0))
        assert "of the answer" not in screen()


def test_mistakes_are_answered_and_the_chat_goes_on(home: Path, folder: Path) -> None:
    say = f"/sesion\n/zzz\n{'x' * 3000}\n/allow sometimes\n/exit\nnot asked\n"
    done = piped(home, "--docs", str(folder), say=say)
    assert "there is no /sesion; /help lists" in done.stderr
    assert "there is no /zzz; /help lists" in done.stderr
    assert "2,000 at most" in done.stderr
    assert "/allow session" in done.stderr
    assert "not asked" not in done.stdout


@every_phase_by_model
def test_a_retry_reads_the_settings_again(home: Path) -> None:
    """The server that failed is replaced by another one, in the file, while the chat is open."""
    settings = home / "unified_flow.toml"
    with (
        ModelServer(script(synthesis=status(500), planner=COMPLETE)) as broken,
        ModelServer(script(synthesis=DRAFT, planner=COMPLETE)) as sound,
    ):
        settings.write_text(f'model = "m"\nbase_url = "{broken.url}"\n')
        chat = forked.Process(
            [*CHAT, "--home", str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert chat.stdin is not None
        assert chat.stderr is not None
        chat.stdin.write("What is a topic?\n")
        chat.stdin.flush()
        while "mended?" not in chat.stderr.readline():
            assert chat.poll() is None
        settings.write_text("model = \n")
        chat.stdin.write("/retry\n")
        chat.stdin.flush()
        assert "cannot be read" in chat.stderr.readline()
        settings.write_text(f'model = "m"\nbase_url = "{sound.url}"\n')
        out, _ = chat.communicate("/retry\n", timeout=60)
    assert chat.returncode == 0
    assert "A topic is a named bus." in out


def test_ctrl_c_stops_the_turn_and_not_the_chat(home: Path, folder: Path) -> None:
    with ModelServer(script(synthesis=[hang(), DRAFT])) as server:
        args = [*CHAT[1:], "--home", str(home), "--docs", str(folder), *served(server)]
        env = os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1"}  # this terminal answers no questions
        chat = pexpect.spawn(sys.executable, args, env=env, dimensions=(40, 100), timeout=30)
        chat.delaybeforesend = None  # it waits for what is expected
        chat.expect("/help lists")
        chat.send("/ret")
        chat.expect("let the turn go on")
        chat.sendcontrol("u")
        chat.sendline("What is a topic?")
        while not any(request.phase == "synthesis" for request in server.requests):
            assert chat.isalive()
            time.sleep(0.01)
        chat.sendcontrol("c")
        chat.expect("interrupted; /retry goes on with it")
        chat.expect(">")
        chat.sendline("/retry")
        chat.expect("A topic is a named bus")
        chat.expect(">")
        chat.sendcontrol("d")
        chat.expect(pexpect.EOF)
        chat.close()
    assert chat.exitstatus == 0


def test_a_chat_begins_with_a_broken_index_and_mends_it(home: Path, folder: Path) -> None:
    index = home / "shared_state" / "index" / "documents.sqlite3"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"no database " * 1000)
    args = [*CHAT[1:], "--home", str(home), "--docs", str(folder)]
    env = os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1"}
    chat = pexpect.spawn(sys.executable, args, env=env, dimensions=(60, 160), timeout=30)
    chat.delaybeforesend = None  # it waits for what is expected
    chat.expect("index --rebuild")
    chat.expect("documents that cannot be searched")
    chat.sendline("What is a topic?")
    chat.expect("mended\\?")
    index.unlink()
    chat.sendline("/retry")
    chat.expect("named bus")
    chat.expect("resolved, verified")
    chat.sendline("/quit")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0


def test_ctrl_c_ends_a_chat_whose_pipe_stays_open(home: Path) -> None:
    chat = forked.Process(
        [*CHAT, "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert chat.stdin is not None
    assert chat.stderr is not None
    try:
        chat.stdin.write("/session\n")
        chat.stdin.flush()
        while "session " not in chat.stderr.readline():
            assert chat.poll() is None
        chat.send_signal(signal.SIGINT)
        assert chat.wait() == 130
    finally:
        chat.kill()
        chat.communicate()


@every_phase_by_model
def test_a_refused_tool_is_allowed_in_the_chat(home: Path) -> None:
    request = ToolRequest(tool="memory.create", args={"text": "Likes tea"}, goal_id="g1")
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
    unknown = Draft(response="I do not know.", abstained=True)
    with ModelServer(script(planner=[plan, COMPLETE], synthesis=unknown)) as server:
        done = piped(home, *served(server), say="What is a topic?\n/allow\n")
    assert "/allow lets it run this once" in done.stderr
    assert "mended?" not in done.stderr
    assert "resolved, verified" in done.stderr


@every_phase_by_model
def test_what_a_person_is_asked_is_answered_by_the_next_line(
    home: Path, model_server: ModelServer
) -> None:
    request = ToolRequest(tool="human.ask", args={"question": "Which robot?"}, goal_id="g1")
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
    known = Draft(response="It is the red one.", abstained=True)
    model_server.script = script(planner=[plan, COMPLETE], synthesis=known)
    done = piped(home, *served(model_server), say="Is mine ready?\nThe red one\n")
    assert done.stdout.startswith("Which robot?\n")
    assert "It is the red one." in done.stdout
    assert "the next line is the answer" in done.stderr
    assert "failed" not in done.stderr
    assert "resolved, verified" in done.stderr


def test_a_session_does_not_go_on_as_somebody_else_in_silence(home: Path, folder: Path) -> None:
    options = ["--docs", str(folder), "--session", "s1"]
    piped(home, *options, "--user", "anna", say="What is a topic?\n")
    assert "anna" not in piped(home, *options, "--user", "anna", say="And a service?\n").stderr
    done = piped(home, *options, "--user", "bo", say="What is a topic?\n")
    assert "session s1 is anna's; as bo you go on with what was said in it" in done.stderr
