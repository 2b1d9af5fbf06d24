"""A call that writes and was cut off: a person is asked, and a script is refused."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interventions.retry.contract import BegunCall, CallDecision, RetryRequest
from tests import forked
from tests.answers import (
    COMPLETE,
    NOTHING_CLAIMED,
    QUESTION,
    every_phase_by_model,
    journal_lines,
    script,
)
from tests.integration.test_at_most_once import cancelled
from tests.servers.model_server import ModelServer
from unified_flow.flow import UnifiedFlow
from unified_flow.resume.flow_resumer import FlowResumer
from unified_flow.resume.replay.replay import replay
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.turns.journal import read
from unified_flow.turns.results import Plan, ToolRequest
from unified_flow.wiring import wire

pytestmark = every_phase_by_model

SECRET = "sk-planted-4f9a8c7b6d5e4f3a2b1c0d9e8f7a6b5c"
WRITE = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[ToolRequest(tool="note.write", args={"text": "once", "token": SECRET})],
)
PATIENCE_S = 30.0


class Note(Arguments):
    text: str
    token: str


@pytest.fixture
def cut_off(home: Path, model_server: ModelServer) -> None:
    """A turn whose writing tool had begun when somebody stopped it."""
    model_server.script = script(planner=[WRITE, COMPLETE], synthesis=NOTHING_CLAIMED)

    async def run(args: Note) -> ToolOutput:
        await cancelled()
        return ToolOutput("written")

    writer = Tool("note.write", "writes", Note, frozenset({Access.WRITES}), run)
    flow = UnifiedFlow(
        wire(
            home,
            tools=[writer],
            allow_tools=["*"],
            model="m",
            base_url=model_server.url,
            size="large",
        )
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_ask(flow))


async def _ask(flow: UnifiedFlow) -> None:
    async with flow:
        await flow.process("s", QUESTION)


def command(home: Path, *words: str) -> dict[str, Any]:
    return {
        "args": [sys.executable, "-m", "unified_flow", "resume", "1", *words],
        "env": {**os.environ, "UNIFIED_FLOW_HOME": str(home)},
    }


def at_a_terminal(home: Path, typed: str) -> tuple[int, str]:
    """Exit code, and all that a person saw who typed `typed` when they were asked."""
    ours, theirs = pty.openpty()
    process = forked.Process(**command(home), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen, answers = b"", typed.splitlines(keepends=True)
    while True:
        assert select.select([ours], [], [], PATIENCE_S)[0], seen
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            more = b""
        if not more:
            break
        seen += more
        if answers and seen.endswith(b"as it is? "):
            os.write(ours, answers.pop(0).encode())
    os.close(ours)
    return process.wait(), seen.decode()


@pytest.mark.usefixtures("cut_off")
def test_without_a_terminal_it_is_refused_with_the_names_of_the_flags(home: Path) -> None:
    before = journal_lines(home)
    done = forked.run(
        **command(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "note.write had begun to write" in done.stderr
    assert "--rerun-tools" in done.stderr
    assert "--tools-done" in done.stderr
    assert journal_lines(home) == before


@pytest.mark.usefixtures("cut_off")
def test_the_question_names_the_call(home: Path) -> None:
    before = journal_lines(home)
    code, seen = at_a_terminal(home, "what?\nreally not\nl\n")
    assert code == 2
    assert 'turn 1 called note.write with {"text": "once"' in seen
    assert SECRET not in seen
    assert "whether it wrote is unknown" in seen
    assert seen.count("[r]un it again") == 3, "asked again after an answer that is none"
    assert "turn 1 was left as it is" in seen
    assert journal_lines(home) == before


@pytest.mark.usefixtures("cut_off")
def test_what_counts_as_done_is_not_called(home: Path) -> None:
    code, seen = at_a_terminal(home, "d\n")
    assert code == 0, seen
    assert "A topic is a named bus." in seen
    lines = journal_lines(home)
    assert [line["event"] for line in lines].count("tool_started") == 1
    (planned,) = [n for n, line in enumerate(lines) if line["event"] == "turn_resumed"]
    assert lines[planned]["tools_done"] == [0]
    (result,) = next(line["output"] for line in lines[planned:] if line.get("output"))
    assert result["result"].startswith("done, as ")
    assert replay(read(home / "shared_state/turns/turn_000001")).same


@pytest.mark.usefixtures("cut_off")
def test_a_flag_says_so_for_a_script(home: Path) -> None:
    done = forked.run(**command(home, "--tools-done"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("cut_off")
def test_run_again_calls_it_again(home: Path) -> None:
    code, seen = at_a_terminal(home, "r\n")
    assert code == 1, "this program has no such tool, and so says that it was called"
    assert "there is no tool 'note.write'" in seen.replace("\r\n", "").replace("│", "")


@pytest.mark.usefixtures("cut_off")
def test_other_programs_can_ask_too(home: Path) -> None:
    """What `interventions retry` hands on to whatever resumes the turn."""
    seen: list[BegunCall] = []

    def ask(call: BegunCall) -> CallDecision:
        seen.append(call)
        return "done"

    with closing(FlowResumer()) as resumer:
        told = resumer.retry(home, RetryRequest(1, None, "looked", ask=ask))
    assert (told.status, told.passed) == ("answered", True)
    assert seen == [BegunCall(1, "note.write", WRITE.tool_requests[0].args, unfinished=True)]
