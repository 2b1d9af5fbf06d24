"""What the journal costs: eight no-op phases, each durable, against a floor and against peers.

    python benchmarks/journal.py [--turns N] [--folder DIR] [--peers PYTHON]

The floor is as many fsync'd appends to one file. A turn of the flow visits its planner twice, so
it makes nine; its figure against eight is given too, since its peers are measured against eight.
PYTHON is an interpreter that has the peers (`peers.py`); those that are missing are named and left
out. Every contestant measures the floor between its own turns, on the same DIR, so that the ratios
of one run can be compared. DIR should lie on a real disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from floor import measure
from turn import NOTHING, beginning, overhead

from unified_flow.turns.events import PhaseCompleted, PhaseStarted, TurnCompleted
from unified_flow.turns.file_store import FileTurnStore
from unified_flow.turns.ledger import Ledger

PHASES = 8
PEERS = ("langgraph", "burr", "dbos")
SCRIPT = Path(__file__).with_name("peers.py")


def ours(folder: Path, turns: int) -> dict[str, float]:
    """Eight phase visits through the ledger, as the boundary records them."""
    store = FileTurnStore(folder / "turns")

    async def turn() -> None:
        async with await Ledger.create(store, beginning) as ledger:
            for phase, answers in NOTHING.items():
                started = PhaseStarted(
                    phase=phase,
                    visit=1,
                    attempt=1,
                    input_digest="d" * 64,
                    model="m",
                    recipe_digest="r" * 64,
                )
                await ledger.record(started)
                done = PhaseCompleted(phase=phase, visit=1, output=answers[0], duration_ms=1.0)
                await ledger.record(done)
            await ledger.record(TurnCompleted(status="answered", saved=True, duration_ms=1.0))

    loop = asyncio.new_event_loop()
    return measure(lambda _: loop.run_until_complete(turn()), folder, turns, PHASES)


def peer(name: str, python: Path, folder: Path, turns: int) -> dict[str, float] | str:
    """Its figures, or why there are none."""
    command = [str(python), str(SCRIPT), name, "--folder", str(folder), "--turns", str(turns)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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


def show_whole_turn(folder: Path, turns: int) -> None:
    overhead(folder, 10)
    found = overhead(folder, turns)
    label = f"whole turn, {found.appends} appends"
    took = statistics.median(found.took)
    show(label, {"ms": took, "floor_ms": statistics.median(found.same_floors)}, "(<= 2)")
    show("the same against eight", {"ms": took, "floor_ms": statistics.median(found.floors)})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--peers", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".bench-") as name:
        folder = Path(name)
        show("journal: 8 phases, each durable", ours(folder, options.turns))
        show_whole_turn(folder, options.turns)
        for contestant in PEERS:
            if options.peers is None:
                print(f"{contestant:<40} not measured: name an interpreter with --peers")
                continue
            found = peer(contestant, options.peers, folder, options.turns)
            if isinstance(found, str):
                print(f"{contestant:<40} not measured: {found}")
            else:
                show(contestant, found)


if __name__ == "__main__":
    main()
