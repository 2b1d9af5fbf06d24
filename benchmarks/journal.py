"""What the journal costs: eight no-op phases, each durable, against a floor and against peers.

    python benchmarks/journal.py [--turns N] [--folder DIR] [--peers PYTHON]

The floor is eight fsync'd appends. PYTHON is an interpreter of an environment of their own in
which the peers are installed (langgraph langgraph-checkpoint-sqlite burr dbos); those that are
missing are named and left out. Every contestant measures the floor between its own turns, on the
same DIR, so that the ratios of one run can be compared. DIR should lie on a real disk.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

PHASES = 8
PEERS = ("langgraph", "burr", "dbos")
Turn = Callable[[int], None]


def floor(folder: Path) -> float:
    """Milliseconds for eight fsync'd appends of a line as long as a phase's to a new file."""
    line = json.dumps({"phase": "x" * 16, "output": "y" * 400}).encode() + b"\n"
    path = Path(tempfile.mktemp(dir=folder))
    started = perf_counter()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for _ in range(PHASES):
        os.write(descriptor, line)
        os.fsync(descriptor)
    os.close(descriptor)
    return (perf_counter() - started) * 1000


def measure(turn: Turn, folder: Path, turns: int) -> dict[str, float]:
    """p50 in milliseconds of a turn and of the floor, interleaved."""
    floors, took = [], []
    for number in range(turns + 5):
        floors.append(floor(folder))
        started = perf_counter()
        turn(number)
        took.append((perf_counter() - started) * 1000)
    return {"ms": statistics.median(took[5:]), "floor_ms": statistics.median(floors[5:])}


def ours(folder: Path, turns: int) -> dict[str, float]:
    """Eight phase visits through the ledger, as the boundary records them."""
    sys.path.insert(0, str(Path(__file__).parent))
    from turn import NOTHING

    from unified_flow.events import PhaseCompleted, PhaseStarted, TurnCompleted, TurnStarted
    from unified_flow.journal import TurnFolders
    from unified_flow.ledger import Ledger

    folders = TurnFolders(folder / "turns")

    def turn(number: int) -> None:
        turn_id, place = folders.create()
        first = TurnStarted(
            turn_id=turn_id,
            session_id="s",
            request_id="r",
            user_id="u",
            channel=None,
            question="q",
            policy="fail_fast",
            config_digest="",
        )
        with Ledger(place, first=first) as ledger:
            for phase, answers in NOTHING.items():
                started = PhaseStarted(
                    phase=phase,
                    visit=1,
                    attempt=1,
                    input_digest="d" * 64,
                    model="m",
                    recipe_digest="r" * 64,
                )
                ledger.record(started)
                done = PhaseCompleted(phase=phase, visit=1, output=answers[0], duration_ms=1.0)
                ledger.record(done)
            ledger.record(TurnCompleted(status="answered", saved=True, duration_ms=1.0))

    return measure(turn, folder, turns)


def whole_turn(folder: Path, turns: int) -> dict[str, float]:
    """A whole turn of the flow through phases that do nothing (benchmarks/turn.py)."""
    sys.path.insert(0, str(Path(__file__).parent))
    from turn import overhead

    overhead(folder, 10)
    floors, took = overhead(folder, turns)
    return {"ms": statistics.median(took), "floor_ms": statistics.median(floors)}


def langgraph(folder: Path, turns: int) -> dict[str, float]:
    import sqlite3
    from typing import Any, TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        done: int

    graph: Any = StateGraph(State)
    names = [f"phase{number}" for number in range(PHASES)]
    for name in names:
        graph.add_node(name, lambda state: {"done": state["done"] + 1})
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    connection = sqlite3.connect(folder / "langgraph.sqlite3", check_same_thread=False)
    app = graph.compile(checkpointer=SqliteSaver(connection))

    def turn(number: int) -> None:
        config = {"configurable": {"thread_id": str(number)}}
        assert app.invoke({"done": 0}, config, durability="sync")["done"] == PHASES

    return measure(turn, folder, turns)


def burr(folder: Path, turns: int) -> dict[str, float]:
    from burr.core import ApplicationBuilder, State, action
    from burr.core.persistence import SQLLitePersister

    @action(reads=["done"], writes=["done"])
    def step(state: State) -> State:
        return state.update(done=state["done"] + 1)

    persister = SQLLitePersister(db_path=str(folder / "burr.sqlite3"), table_name="turns")
    persister.initialize()
    names = [f"phase{number}" for number in range(PHASES)]

    def turn(number: int) -> None:
        application = (
            ApplicationBuilder()
            .with_actions(**{name: step for name in names})
            .with_transitions(*itertools.pairwise(names))
            .with_state(done=0)
            .with_entrypoint(names[0])
            .with_identifiers(app_id=str(number))
            .with_state_persister(persister)
            .build()
        )
        _, _, state = application.run(halt_after=[names[-1]])
        assert state["done"] == PHASES

    return measure(turn, folder, turns)


def dbos(folder: Path, turns: int) -> dict[str, float]:
    from dbos import DBOS

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder / 'dbos.sqlite3'}",
            "log_level": "ERROR",
        }
    )

    @DBOS.step()
    def step(done: int) -> int:
        return done + 1

    @DBOS.workflow()
    def run() -> int:
        done = 0
        for _ in range(PHASES):
            done = step(done)
        return done

    DBOS.launch()

    def turn(number: int) -> None:
        assert run() == PHASES

    try:
        return measure(turn, folder, turns)
    finally:
        DBOS.destroy()


def peer(name: str, python: Path, folder: Path, turns: int) -> dict[str, float] | str:
    """Its figures, or why there are none."""
    command = [str(python), __file__, "--only", name, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--turns", str(turns)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed without a word"])[-1]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(label: str, found: dict[str, float], note: str = "") -> None:
    ratio = found["ms"] / found["floor_ms"]
    print(
        f"{label:<40} {found['ms']:7.2f} ms   floor {found['floor_ms']:6.2f} ms   "
        f"{ratio:5.2f} x   {note}"
    )


def resume_large(folder: Path) -> float:
    """Milliseconds from a process that is ready to the start of the phase, with a 1 MB journal."""
    sys.path.insert(0, str(Path(__file__).parent))
    from turn import NOTHING

    from unified_flow.events import (
        AnyEvent,
        ModelCalled,
        PhaseCompleted,
        PhaseStarted,
        TurnStarted,
    )
    from unified_flow.ledger import Ledger
    from unified_flow.resuming.run import Resumption, flow_of, load, resume_turn
    from unified_flow.wiring import wire

    services = wire(folder)
    turn_id, place = services.folders.create()
    first = TurnStarted(
        turn_id=turn_id,
        session_id="s",
        request_id="r",
        user_id="u",
        channel=None,
        question="What is a topic?",
        policy="fail_fast",
        config_digest="",
    )
    with Ledger(place, first=first) as ledger:
        for phase in ("query_analyzer", "reflection", "context_gatherer"):
            started = PhaseStarted(
                phase=phase, visit=1, attempt=1, input_digest="", model="m", recipe_digest=""
            )
            ledger.record(started)
            for _ in range(34):
                said = ModelCalled(
                    phase=phase, model="m", request_digest="", reply="x" * 10_000, duration_ms=1.0
                )
                ledger.record(said)
            ledger.record(
                PhaseCompleted(phase=phase, visit=1, output=NOTHING[phase][0], duration_ms=1.0)
            )
    assert (place / "journal.jsonl").stat().st_size > 1_000_000
    begun: list[float] = []

    def watch(event: AnyEvent) -> None:
        if isinstance(event, PhaseStarted) and not begun:
            begun.append(perf_counter())

    async def go() -> float:
        started = perf_counter()
        flow = flow_of(load(folder, turn_id), folder)
        await resume_turn(flow, turn_id, Resumption(), observer=watch)
        return (begun[0] - started) * 1000

    return asyncio.run(go())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--only", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".bench-") as name:
        folder = Path(name)
        if options.only:
            run = {"langgraph": langgraph, "burr": burr, "dbos": dbos}[options.only]
            print(json.dumps(run(folder, options.turns)))
            return
        show("journal: 8 phases, each durable", ours(folder, options.turns))
        show("whole turn of 8 phases that do nothing", whole_turn(folder, options.turns), "(<= 2)")
        for contestant in PEERS:
            if options.peers is None:
                print(f"{contestant:<40} not measured: name an interpreter with --peers")
                continue
            found = peer(contestant, options.peers, folder, options.turns)
            if isinstance(found, str):
                print(f"{contestant:<40} not measured: {found}")
            else:
                show(contestant, found)
        took = statistics.median(resume_large(folder) for _ in range(10))
        print(f"resume with a 1 MB journal: its phase starts after {took:.1f} ms (at most 50)")


if __name__ == "__main__":
    main()
