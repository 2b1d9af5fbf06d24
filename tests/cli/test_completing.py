"""What the shell offers, asked as the shell asks."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.answers import COMPLETE, scripted_flow
from unified_flow.turns.memory import MemoryStore

BIN = Path(sys.executable).parent / "unified-flow"


@pytest.fixture
def used(home: Path) -> Path:
    async def talk() -> None:
        async with scripted_flow(home, planner=COMPLETE) as flow:
            flow.services.gate.remember("time.now", "always", session_id="ros")
            await flow.process("ros", "What is a topic?")

    asyncio.run(talk())
    (home / "unified_flow.toml").write_text(
        '[models.large]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    return home


def offered(home: Path, line: str) -> str:
    words = f"unified-flow {line}"
    env = os.environ | {
        "_UNIFIED_FLOW_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "UNIFIED_FLOW_HOME": str(home),
    }
    return forked.run([BIN], env=env, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tools call memory.", "memory.create"),
        ("tools call time", "time.now"),
        ("grants delete t", "time.now"),
        ("sessions show r", "ros"),
        ("chat --session r", "ros"),
        ("ask --model l", "large"),
        ("turns show 1", "1"),
        ("resume 1", "1"),
        ("replay 1", "1"),
        ("turns abandon 1", "1"),
        ("resume 1 --from p", "planner"),
        ("serve --policy g", "graceful"),
        ("ask x --allow-tool m", "memory.create"),
    ],
)
def test_names_are_completed(used: Path, line: str, expected: str) -> None:
    assert expected in offered(used, line).split()


def test_memories_are_completed_by_their_ids(used: Path) -> None:
    made = MemoryStore(used / "shared_state" / "memory").create("default", "Likes tea")
    assert made.id in offered(used, "memory delete m")


def test_nothing_is_offered_and_nothing_said_where_nothing_can_be_read(home: Path) -> None:
    (home / "unified_flow.toml").write_text("model = \n")
    assert offered(home, "ask --model l").split() == []
    assert offered(home, "memory delete m").split() == []


@pytest.mark.parametrize("line", ["index d", "ask x --docs d", "serve --docs d"])
def test_files_are_left_to_bash_and_offered_to_fish(home: Path, docs: Path, line: str) -> None:
    assert offered(home, line).split() == [], "so that complete -o default offers files"
    env = os.environ | {
        "_UNIFIED_FLOW_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"unified-flow {line}",
    }
    given = {"env": env, "cwd": docs.parent, "capture_output": True, "text": True}
    assert forked.run([BIN], **given, check=False).stdout.split() == ["docs/"]
