"""A file of questions, one a line, four at once: python examples/nightly_batch.py QUESTIONS ANSWERS

A failure stops only its own question; it waits in the queue, and the exit code is 1.
"""

import asyncio
import json
import sys
from pathlib import Path

from unified_flow import PhaseError, UnifiedFlow

AT_ONCE = 4


async def main(questions: Path, answers: Path) -> int:
    limit = asyncio.Semaphore(AT_ONCE)
    failed = 0

    async def answer(flow: UnifiedFlow, number: int, question: str) -> str:
        nonlocal failed
        async with limit:
            try:
                turn = await flow.process(f"nightly {number}", question)
            except PhaseError as exc:
                failed += 1
                return json.dumps({"question": question, "intervention": exc.intervention_id})
        return json.dumps({"question": question, "answer": turn.response, "turn": turn.turn_id})

    lines = questions.read_text(encoding="utf-8").splitlines()
    async with UnifiedFlow.from_config(docs="architecture") as flow:
        done = await asyncio.gather(*(answer(flow, n, line) for n, line in enumerate(lines, 1)))
    answers.write_text("\n".join(done) + "\n", encoding="utf-8")
    print(f"{len(done) - failed} of {len(done)} answered", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]))))
