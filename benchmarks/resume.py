"""How soon a turn with a journal of 1 MB goes on: from a ready process to the start of its phase.

python benchmarks/resume.py [--turns N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from turn import NOTHING, beginning

from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.lookup import flow_for, load_turn
from unified_flow.resume.resumption import resume_turn
from unified_flow.turns.events import AnyEvent, ModelCalled, PhaseCompleted, PhaseStarted
from unified_flow.turns.ledger import Ledger
from unified_flow.wiring import wire

BYTES = 1_000_000
AT_MOST_MS = 50


async def large_turn(home: Path) -> int:
    """A turn that was stopped before its plan, after a hundred replies of a talkative model."""
    services = wire(home)
    async with await Ledger.create(services.turns, beginning) as ledger:
        for phase in ("query_analyzer", "reflection", "context_gatherer"):
            await ledger.record(
                PhaseStarted(
                    phase=phase, visit=1, attempt=1, input_digest="", model="m", recipe_digest=""
                )
            )
            for _ in range(34):
                said = ModelCalled(
                    phase=phase, model="m", request_digest="", reply="x" * 10_000, duration_ms=1.0
                )
                await ledger.record(said)
            await ledger.record(
                PhaseCompleted(phase=phase, visit=1, output=NOTHING[phase][0], duration_ms=1.0)
            )
    turn_id = ledger.turn.turn_id
    mark = await services.turns.mark(turn_id)
    assert mark is not None
    assert mark.size is not None
    assert mark.size > BYTES
    return turn_id


async def resumed(home: Path, turn_id: int) -> float:
    """Milliseconds until its phase starts."""
    begun: list[float] = []

    def watch(event: AnyEvent) -> None:
        if isinstance(event, PhaseStarted) and not begun:
            begun.append(perf_counter())

    started = perf_counter()
    await resume_turn(
        flow_for(load_turn(home, turn_id), home), turn_id, ResumeRequest(), observer=watch
    )
    return (begun[0] - started) * 1000


async def one(home: Path) -> float:
    return await resumed(home, await large_turn(home))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".bench-") as folder:
        home = Path(folder)
        took = [asyncio.run(one(home)) for _ in range(options.turns)]
    print(
        f"resume with a 1 MB journal: its phase starts after p50 {statistics.median(took):.1f} ms, "
        f"at worst {max(took):.1f} ms (at most {AT_MOST_MS})"
    )


if __name__ == "__main__":
    main()
