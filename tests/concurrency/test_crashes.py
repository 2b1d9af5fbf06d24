"""What kill -9 and a bad disk leave of a turn: nothing is lost, done twice, or taken for another.

SOAK=1 kills at every system call of a turn, of a resumption and of a fork, and damages every byte
and every line of the journals of an answered, a failed, a resumed and a forked turn; the suite
takes a few of each.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from tests import forked
from tests.answers import COMPLETE, DRAFT, SEARCH, Turns, every_phase_by_model, renumbered
from tests.integration.test_resume import BROKEN, ask, make, resume
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
    done = forked.run([*command, str(seed)], cwd=forked.REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-4000:]}"
    told = json.loads(done.stdout)
    if "skipped" in told:
        pytest.skip(told["skipped"])
    assert told["calls"] > 500
    assert told["kills"] >= (KILLS or told["calls"])


pytestmark = every_phase_by_model


def failed(home: Path, docs: Path) -> int:
    assert not isinstance(ask(make(home, docs, synthesis=BROKEN)), Turn)
    return 1


def resumed(home: Path, docs: Path) -> int:
    return resume(make(home, docs), failed(home, docs), note="mended").turn_id


def answered(home: Path, docs: Path) -> int:
    assert isinstance(ask(make(home, docs)), Turn)
    return 1


def fork(home: Path, docs: Path) -> int:
    return resume(make(home, docs), answered(home, docs), from_phase="synthesis").turn_id


HISTORIES = (answered, failed, resumed, fork)


@dataclass
class Written:
    """A turn, its journal, and what of it is read where only its first `lines` are there."""

    turns: Turns
    turn_id: int

    def __post_init__(self) -> None:
        self.journal = self.turns.journal(self.turn_id)
        self.content = self.journal.read_bytes()
        self.lines = self.content.splitlines(keepends=True)
        self.events = list(read(self.journal.parent))
        self.copied = len(self.events) - len(self.lines)  # in a fork's first line

    def load(self) -> Turn | None:
        return self.turns.load(self.turn_id)

    def until(self, lines: int) -> Turn | None:
        turn = fold(self.events[: lines + self.copied])
        stopped = turn.interrupted() if turn.status == "running" else turn
        return stopped if lines else None


@pytest.fixture(params=HISTORIES if SOAK else ["one of them"])
def written(request: pytest.FixtureRequest, home: Path, docs: Path) -> Written:
    history = request.param if SOAK else random.choice(HISTORIES)
    print(history.__name__)
    return Written(Turns(home), history(home, docs))


def some(places: Iterable[int]) -> list[int]:
    """All of them, or about fifty from a place by chance."""
    every = list(places)
    step = 1 if SOAK else max(1, len(every) // 50)
    return every[random.randrange(step) :: step]


def test_cut_off_at_every_byte_it_is_the_turn_as_it_was_by_then(
    written: Written, home: Path, docs: Path
) -> None:
    journal, content = written.journal, written.content
    for place in some(range(len(content))):
        journal.write_bytes(content[:place])
        assert written.load() == written.until(content[:place].count(b"\n")), f"cut at {place}"
    ends = [place + 1 for place in range(len(content)) if content[place] == ord("\n")]
    for end in ends[:-1] if SOAK else random.sample(ends[:-1], 3):
        journal.write_bytes(content[: end + 7])
        planned = content[:end].count(b'"phase_completed","phase":"planner"')
        flow = make(home, docs, planner=[SEARCH, COMPLETE][min(planned, 1) :])
        gone_on = resume(flow, written.turn_id).turn
        assert gone_on.response == DRAFT.response, f"cut at {end + 7}"


def test_no_flipped_bit_is_read_as_what_it_is_not_and_what_is_before_it_can_be_kept(
    written: Written,
) -> None:
    journal, content = written.journal, written.content
    whole = written.load()
    for place in some(range(len(content))):
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.randrange(8)
        journal.write_bytes(flipped)
        before = content[:place].count(b"\n")
        if place == len(content) - 1:
            assert written.load() == written.until(before), "its end is torn"
            continue
        with pytest.raises(RetrievalError):
            written.load()
        if not before:
            with pytest.raises(NotResumableError, match="the first line is damaged"):
                written.turns.salvage(written.turn_id)
            continue
        kept_lines, salvaged = written.turns.salvage(written.turn_id)
        assert kept_lines == before, f"a bit of byte {place}"
        kept, expected = written.load(), written.until(before)
        assert kept is not None
        assert expected is not None
        assert (kept.visits, kept.sections) == (expected.visits, expected.sections)
        (journal.parent / salvaged.aside).unlink()
    journal.write_bytes(content)
    assert written.load() == whole


def test_lines_that_are_missing_moved_or_doubled_are_damage_or_still_a_turn(
    written: Written,
) -> None:
    """Whoever reads it gets a turn or a RetrievalError, and nothing else that could be a mistake
    of the program's own."""
    whole = written.lines
    orders = [whole[:n] + whole[n + 1 :] for n in range(len(whole))]
    orders += [whole[: n + 1] + whole[n:] for n in range(len(whole))]
    for one, other in combinations(range(len(whole)), 2):
        orders.append([*whole])
        orders[-1][one], orders[-1][other] = whole[other], whole[one]
    refused = 0
    for place in some(range(len(orders))):
        lines = orders[place]
        written.journal.write_bytes(b"".join(lines))
        if lines != whole[:-1]:
            with pytest.raises(
                RetrievalError, match=r"is missing|stands there again|stands before"
            ):
                written.load()
        # as in journals whose lines had no numbers
        written.journal.write_bytes(renumbered(lines))
        try:
            written.load()
        except RetrievalError:
            refused += 1
    assert refused
