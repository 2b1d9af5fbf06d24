"""What kill -9 and a bad disk leave of a turn: nothing is lost, done twice, or taken for another.

SOAK=1 kills at every system call of a turn, of a resumption and of a fork, and damages every byte
of a journal; the suite takes a few of each. `test_journal_order.py` drops, doubles and swaps lines.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.answers import COMPLETE, SEARCH, Turns, every_phase_by_model
from tests.integration.test_resume import ask, make, resume
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.turns.fold import fold
from unified_flow.turns.journal import read
from unified_flow.turns.turn import Turn

SOAK = bool(os.environ.get("SOAK"))
KILLS = 0 if SOAK else 6


@pytest.mark.parametrize("scenario", ["turn", "resume", "fork"])
def test_killed_anywhere_it_goes_on_and_nothing_is_done_twice(scenario: str) -> None:
    """In a process without threads, which forks what is killed."""
    command = [sys.executable, "-m", "tests.concurrency.crashing", scenario, str(KILLS)]
    seed = random.randrange(10**6)
    done = subprocess.run([*command, str(seed)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-4000:]}"
    told = json.loads(done.stdout)
    if "skipped" in told:
        pytest.skip(told["skipped"])
    assert told["calls"] > 500
    assert told["kills"] >= (KILLS or told["calls"])


pytestmark = every_phase_by_model


@pytest.fixture
def answered(home: Path, docs: Path) -> tuple[Turns, Turn]:
    turn = ask(make(home, docs))
    assert isinstance(turn, Turn)
    return Turns(home), turn


def some(places: Iterable[int]) -> list[int]:
    """All of them, or about fifty from a place by chance."""
    every = list(places)
    step = 1 if SOAK else max(1, len(every) // 50)
    return every[random.randrange(step) :: step]


def test_cut_off_at_every_byte_it_is_the_turn_as_it_was_by_then(
    answered: tuple[Turns, Turn], home: Path, docs: Path
) -> None:
    turns, never = answered
    journal = turns.journal(1)
    content, events = journal.read_bytes(), list(read(journal.parent))
    for place in some(range(len(content))):
        journal.write_bytes(content[:place])
        turn, lines = turns.load(1), content[:place].count(b"\n")
        expected = fold(events[:lines])
        assert turn == (None if not lines else expected.interrupted()), f"cut at byte {place}"
    ends = [place + 1 for place in range(len(content)) if content[place] == ord("\n")]
    for end in ends[:-1] if SOAK else random.sample(ends[:-1], 3):
        journal.write_bytes(content[: end + 7])
        planned = content[:end].count(b'"phase_completed","phase":"planner"')
        resumed = resume(make(home, docs, planner=[SEARCH, COMPLETE][min(planned, 1) :]))
        assert resumed.turn.response == never.response, f"cut at byte {end + 7}"


def test_no_flipped_bit_is_read_as_what_it_is_not_and_what_is_before_it_can_be_kept(
    answered: tuple[Turns, Turn],
) -> None:
    turns, never = answered
    journal = turns.journal(1)
    content, events = journal.read_bytes(), list(read(journal.parent))
    first = content.index(b"\n")
    for place in some(range(len(content))):
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.randrange(8)
        journal.write_bytes(flipped)
        before = content[:place].count(b"\n")
        if place == len(content) - 1:
            assert turns.load(1) == fold(events[:before]).interrupted(), "its end is torn"
            continue
        with pytest.raises(RetrievalError):
            turns.load(1)
        if place <= first:
            with pytest.raises(NotResumableError, match="the first line is damaged"):
                turns.salvage(1)
            continue
        assert turns.salvage(1)[0] == before, f"a bit of byte {place}"
        kept = turns.require(1)
        assert kept.visits == fold(events[:before]).interrupted().visits
        assert kept.sections == fold(events[:before]).sections
    journal.write_bytes(content)
    assert turns.require(1) == never
