"""What the shell offers, asked as the shell asks."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.answers import COMPLETE, scripted_flow
from unified_flow.retrieval.documents import open_documents

BIN = Path(sys.executable).parent / "unified-flow"


@pytest.fixture
def used(home: Path, docs: Path) -> Path:
    async def talk() -> None:
        async with scripted_flow(home, planner=COMPLETE) as flow:
            await flow.process("ros", "What is a topic?")

    asyncio.run(talk())
    documents = open_documents(home, [docs])
    documents.refresh()
    documents.close()
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
        ("sessions show r", "ros"),
        ("chat --session r", "ros"),
        ("turns show 1", "1"),
        ("resume 1", "1"),
        ("replay 1", "1"),
        ("turns abandon 1", "1"),
        ("ask x --collection d", "documents"),
    ],
)
def test_names_are_completed(used: Path, line: str, expected: str) -> None:
    assert expected in offered(used, line).split()


def test_nothing_is_offered_and_nothing_said_where_nothing_can_be_read(home: Path) -> None:
    book = home / "shared_state" / "sessions.sqlite3"
    book.parent.mkdir(parents=True)
    book.write_bytes(b"no database " * 1000)
    assert offered(home, "sessions show r").split() == []
