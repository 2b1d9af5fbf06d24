"""Turns, resumptions and forks that are killed, each many times: `python -m` this, with a scenario,
how many kills before a system call (0: before every one) and a seed; a quarter as many come at any
time besides. Prints what it did as JSON, and ends with a traceback at the first kill after which
something is lost, done twice or cannot go on.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from interventions import InterventionQueue
from tests.answers import COMPLETE, IN_ENVIRONMENT, QUESTION
from tests.concurrency import killing
from tests.integration.test_resume_equivalence import (
    FAILURE,
    Ended,
    Stop,
    World,
    ended,
    flow_in,
    looks,
    script,
)
from unified_flow.errors.turns import NotResumableError
from unified_flow.phases.errors import PhaseError
from unified_flow.resume import retention
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import ResumeResult, resume_turn
from unified_flow.stores import turn_archive
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.file_store import FileTurnStore
from unified_flow.turns.fold import fold
from unified_flow.turns.journal import read
from unified_flow.turns.turn import Turn
from unified_flow.turns.turn_index import TurnQuery

SCRIPT = script(planner=[looks("a"), looks("b", "c", tool="write"), COMPLETE])
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass
class Lasting(World):
    """What was done is in a file, and outlives the process that did it."""

    log: Path = Path()
    folder: Path = Path()

    def turn(self) -> Turn:
        """Read without a thread: the process is forked."""
        return fold(read(self.folder))

    def call(self, name: str) -> None:
        super().call(name)
        with self.log.open("a") as log:
            log.write(f"{name}\n")


def world(home: Path, turn_id: int, stops: dict[int, Stop] | None = None) -> Lasting:
    turns = FileTurnStore(home / "shared_state/turns")
    folder = Path(turns.place(turn_id))
    return Lasting(turns, SCRIPT, stops or {}, log=home / "done.txt", folder=folder)


def done(home: Path) -> list[str]:
    log = home / "done.txt"
    return log.read_text().splitlines() if log.exists() else []


def writes(home: Path) -> list[str]:
    return [line for line in done(home) if line.startswith("tool 2")]


async def asked(home: Path, stops: dict[int, Stop] | None = None) -> None:
    following = max(await turn_archive(home).store.ids(), default=0) + 1
    try:
        async with flow_in(home, world(home, following, stops)) as flow:
            await flow.process("s", QUESTION)
    except PhaseError:
        pass


async def resumed(
    home: Path, turn_id: int, *, runs: int | None = None, **wanted: Any
) -> ResumeResult:
    """`runs` is the turn that runs, if it is another: a fork."""
    async with flow_in(home, world(home, runs or turn_id)) as flow:
        return await resume_turn(flow, turn_id, ResumeRequest(**wanted))


async def to_its_end(home: Path, turn_id: int) -> Ended:
    """The turn after it was resumed, with what a person would answer who looks what was written."""
    archive = turn_archive(home)
    try:
        await resumed(home, turn_id, note="mended")
    except NotResumableError as exc:
        if "had begun to write" in str(exc):
            standing = await archive.require(turn_id)
            (begun,) = [write for write in standing.writes if not write.done]
            there = f"tool 2 {begun.args['word']}" in done(home)
            decided = {"tools_done": there, "rerun_tools": not there}
            await resumed(home, turn_id, note="mended", **decided)
        elif "nothing left to do" not in str(exc):
            raise
    turn = await archive.require(turn_id)
    found = ended(home, turn, world(home, turn_id))
    for result in found.sections["coordinator"]:
        result["result"] = ""  # of a call that a person counts as done the answer is lost
    found.sections["save"]["message_ids"] = []  # they follow from the request id
    return replace(found, stored=[row[1:] for row in found.stored], done=[])


def must_equal(again: Ended, never: Ended) -> None:
    for name, value in vars(never).items():
        assert getattr(again, name) == value, f"{name}: {getattr(again, name)}, not {value}"


@dataclass(frozen=True)
class Scenario:
    """`begin` makes the home, `work` is killed in it, and `check` is what must hold then."""

    begin: Callable[[Path], Any]
    work: Callable[[Path], Any]
    check: Callable[[Path, Ended], Any]
    turn_id: int = 1


async def nothing(home: Path) -> None:
    home.mkdir()


async def failed(home: Path) -> None:
    home.mkdir()
    await asked(home, {10: FAILURE})
    turn = await turn_archive(home).require(1)
    assert turn.failure is not None
    assert turn.failure.phase == "synthesis"


async def answered(home: Path) -> None:
    home.mkdir()
    await asked(home)
    assert (await turn_archive(home).require(1)).is_final


async def whole_turns(archive: TurnArchive) -> list[Turn]:
    """None may be damaged; of one the number alone may have been taken."""
    turns, unreadable = await archive.latest(None, TurnQuery())
    assert [told for told in unreadable.values() if "was never begun" not in told] == []
    return turns


async def check_turn(home: Path, never: Ended) -> None:
    archive = turn_archive(home)
    turns = await whole_turns(archive)
    if not turns:
        await asked(home)
        turns = await whole_turns(archive)
    assert len(turns) == 1
    must_equal(await to_its_end(home, turns[0].turn_id), never)
    assert writes(home) == ["tool 2 b", "tool 2 c"]


async def check_resumption(home: Path, never: Ended) -> None:
    before = len(done(home))
    must_equal(await to_its_end(home, 1), never)
    assert [line for line in done(home)[before:] if line.startswith("tool")] == []
    assert writes(home) == ["tool 2 b", "tool 2 c"]
    (entry,) = InterventionQueue(home).entries()
    assert entry["resolved_at"], "a later look closes what the killed one could not"


async def check_fork(home: Path, never: Ended) -> None:
    archive = turn_archive(home)
    old = home / "old"
    now = Path(archive.store.place(1))
    assert {p.name: p.read_bytes() for p in now.iterdir()} == {
        p.name: p.read_bytes() for p in old.iterdir()
    }
    turns = await whole_turns(archive)
    forks = [turn.turn_id for turn in turns if turn.fork_of == 1]
    assert len(turns) == 1 + len(forks)
    if not forks:
        following = max(await archive.store.ids()) + 1
        forks = [(await resumed(home, 1, runs=following, from_phase="synthesis")).turn_id]
    must_equal(await to_its_end(home, forks[0]), never)
    assert writes(home) == ["tool 2 b", "tool 2 c"]
    await retention.delete(archive.store, [], set, before=LATER)
    assert await archive.store.ids() == [1, forks[0]], "what never began is no turn"


async def kept_aside(home: Path) -> None:
    await answered(home)
    shutil.copytree(home / "shared_state/turns/turn_000001", home / "old")


SCENARIOS = {
    "turn": Scenario(nothing, asked, check_turn),
    "resume": Scenario(failed, partial(resumed, turn_id=1, note="mended"), check_resumption),
    "fork": Scenario(
        kept_aside, partial(resumed, turn_id=1, runs=2, from_phase="synthesis"), check_fork, 2
    ),
}


def main(name: str, kills: int, seed: int) -> None:
    os.environ.update(IN_ENVIRONMENT)
    scenario, chance = SCENARIOS[name], random.Random(seed)

    def run(step: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: asyncio.run(step())

    with tempfile.TemporaryDirectory() as place:
        begun, home = Path(place) / "begun", Path(place) / "home"

        def anew() -> None:
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(begun, home)

        killing.outcome(run(partial(scenario.begin, begun)))
        anew()
        work = run(partial(scenario.work, home))
        for module in killing.outcome(lambda: (work(), list(sys.modules))[1]):
            importlib.import_module(module)  # once, and not in each of thousands of children
        gc.freeze()
        anew()
        try:
            calls = killing.killed_at(work, None)
        except OSError as exc:
            print(json.dumps({"skipped": str(exc)}))
            return
        # The child and what traces it take turns; on one processor none has to wake another.
        os.sched_setaffinity(0, [chance.choice([*os.sched_getaffinity(0)])])
        never = killing.outcome(run(partial(to_its_end, home, scenario.turn_id)))
        places: list[int | float] = [chance.randint(1, calls) for _ in range(kills)]
        places = places or list(range(1, calls + 1))
        places += [chance.uniform(0.0, 0.2) for _ in range(len(places) // 4)]
        for at in places:
            anew()
            if isinstance(at, int):
                killing.killed_at(work, at)
            else:
                killing.killed_after(work, at)
            try:
                killing.outcome(run(partial(scenario.check, home, never)))
            except RuntimeError as exc:
                raise RuntimeError(f"{name}, killed at {at} of {calls}: {exc}") from exc
    print(json.dumps({"scenario": name, "calls": calls, "kills": len(places)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
