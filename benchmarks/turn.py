"""What a turn costs: its own overhead against a floor of fsync'd appends, and a whole turn.

    python benchmarks/turn.py [DOCS] [--questions FILE] [--turns N] [--folder DIR]

Without DOCS only the overhead is measured; FILE holds questions about them, one a line. All
figures of one run belong together; only their ratios can be compared between machines. DIR should
lie on the disk that holds the homes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from floor import Syncs, floor

from unified_flow.engine.phase_table import BY_NAME
from unified_flow.flow import UnifiedFlow
from unified_flow.phases import NAMES
from unified_flow.turns import results
from unified_flow.turns.events import TurnStarted
from unified_flow.wiring import wire

CHECKS = {
    "claims_supported": True,
    "no_hallucinations": True,
    "query_addressed": True,
    "coherent_format": True,
}
NOTHING: dict[str, list[Any]] = {
    "query_analyzer": [
        results.QueryAnalysis(
            resolved_query="q",
            reference_resolution=results.ReferenceResolution(status="not_needed"),
            query_type="new_topic",
        )
    ],
    "reflection": [results.Reflection(decision="PROCEED", confidence=1.0)],
    "context_gatherer": [results.GatheredContext()],
    "planner": [
        results.Plan(
            decision="EXECUTE",
            route="coordinator",
            tool_requests=[results.ToolRequest(tool="none")],
        ),
        results.Plan(decision="COMPLETE", route="synthesis"),
    ],
    "coordinator": [()],
    "synthesis": [results.Draft(response="r")],
    "validation": [results.Verdict(decision="APPROVE", confidence=1.0, checks=CHECKS)],
    "save": [results.Saved()],
}
QUESTIONS = (
    "What is the difference between topics and services?",
    "How does a node find other nodes?",
    "What is a ROS 2 parameter?",
    "What are the quality of service settings?",
    "What is an executor?",
    "How are messages defined in an interface file?",
    "What does colcon do?",
    "What is the domain ID used for?",
)


@dataclass(frozen=True)
class Overhead:
    """Interleaved, in ms: eight appends, as many as a turn makes (`appends`), a turn."""

    appends: int
    floors: list[float]
    same_floors: list[float]
    took: list[float]


def beginning(turn_id: int) -> TurnStarted:
    return TurnStarted(
        turn_id=turn_id,
        session_id="s",
        request_id="r",
        user_id="u",
        channel=None,
        question="What is a topic?",
        policy="fail_fast",
        config_digest="",
    )


def idle_phases() -> dict[str, Any]:
    """Phases that do nothing and come to an end, each visited as in a common turn."""

    def phase(name: str) -> SimpleNamespace:
        original = BY_NAME[name]

        async def run(turn: Any, kit: Any) -> Any:
            answers = NOTHING[name]
            return answers[min(turn.visit_number(name), len(answers)) - 1]

        return SimpleNamespace(NAME=name, ERROR=original.ERROR, SEVERITY=original.SEVERITY, run=run)

    return {name: phase(name) for name in NAMES}


def overhead(home: Path, turns: int) -> Overhead:
    """Turns through all phases; the planner is visited twice, as in a common turn."""
    flow = UnifiedFlow(wire(home))
    real = dict(BY_NAME)
    BY_NAME.update(idle_phases())
    floors, same, took = [], [], []

    async def run() -> int:
        with Syncs() as syncs:
            await flow.process("bench", "q")
        for _ in range(turns):
            floors.append(floor(home, len(NAMES)))
            same.append(floor(home, syncs.count))
            started = perf_counter()
            await flow.process("bench", "q")
            took.append((perf_counter() - started) * 1000)
        return syncs.count

    appends = asyncio.run(run())
    BY_NAME.update(real)
    return Overhead(appends, floors, same, took)


def whole(home: Path, docs: Path, questions: Sequence[str], turns: int) -> list[float]:
    flow = UnifiedFlow(wire(home, docs=[docs]))
    took = []

    async def run() -> None:
        async with flow:
            for number in range(turns + len(questions)):
                started = perf_counter()
                await flow.process(f"bench-{number}", questions[number % len(questions)])
                took.append((perf_counter() - started) * 1000)

    asyncio.run(run())
    return took[len(questions) :]


def show(label: str, values: list[float], note: str = "") -> None:
    ordered = sorted(values)
    p99 = ordered[int(len(ordered) * 0.99) - 1]
    print(f"{label:<42} p50 {statistics.median(values):7.2f} ms   p99 {p99:7.2f} ms   {note}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("docs", type=Path, nargs="?")
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".bench-") as folder:
        home = Path(folder)
        overhead(home, 10)
        found = overhead(home, options.turns)
        took = statistics.median(found.took)
        show(f"floor: {len(NAMES)} fsync'd appends", found.floors)
        show(f"floor: {found.appends}, as many as the turn makes", found.same_floors)
        ratio, more = (
            took / statistics.median(floors) for floors in (found.same_floors, found.floors)
        )
        show(
            "turn of 8 phases that do nothing, journal",
            found.took,
            f"{ratio:.2f} x its floor (at most 2), {more:.2f} x that of eight",
        )
        if options.docs is None:
            print(
                "no documents given: a whole turn was not measured (python benchmarks/turn.py DOCS)"
            )
        else:
            asked = QUESTIONS
            if options.questions is not None:
                lines = options.questions.read_text(encoding="utf-8").splitlines()
                asked = tuple(line for line in lines if line.strip())
            took_whole = whole(home, options.docs, asked, options.turns)
            show("whole turn, embedded model", took_whole, "at most 14 on ROS 2, 22 on Django")


if __name__ == "__main__":
    main()
