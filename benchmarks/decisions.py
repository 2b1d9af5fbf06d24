"""How a model decides on turns of conversations: answer, abstain, or ask back; and is it supported?

    python benchmarks/decisions.py TURNS.json MODEL [--each 20] [--seed 1] [--home FOLDER]

TURNS.json has the form of MTRAG-UN: `passages` by collection, and `tasks`, each with its `input`
(turns of user and agent), its `Collection` and its `answerability`. MODEL is as `--model` takes it
(`embedded`, `local:FILE`, or a name with `--base-url`). `--each` turns of every label are drawn.
What is done is kept in FOLDER, so that the same command goes on where it was stopped, and a larger
`--each` asks only what is new.

Printed, with 95 % intervals: the right decision (answerable: answered; unanswerable: abstained;
underspecified: asked back), failed turns, the share of an answer's sentences that a cited passage
supports by overlap of words (a paraphrase counts against it), and calls, tokens and seconds a turn.
`own`: how often the model itself would have abstained.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from unified_flow.evaluation.answers import interval
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.phases.grounding.citations import supported_sentences
from unified_flow.turns.events import ModelCalled, Observed
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.turn import Turn

RIGHT = {"ANSWERABLE": "answered", "UNANSWERABLE": "abstained", "UNDERSPECIFIED": "asked back"}
HOME = Path(tempfile.gettempdir()) / "unified-flow-decisions"


def drawn(tasks: list[dict[str, Any]], each: int, seed: int) -> list[dict[str, Any]]:
    """The first `each` of every label, in an order that the seed gives: more keeps those."""
    chosen = []
    for label in RIGHT:
        own = sorted((t for t in tasks if t["answerability"][0] == label), key=_id)
        random.Random(seed).shuffle(own)
        chosen += own[:each]
    return sorted(chosen, key=lambda task: str(task["Collection"]))


def _id(task: dict[str, Any]) -> str:
    return str(task["task_id"])


def write_documents(passages: dict[str, dict[str, str]], folder: Path) -> None:
    for collection, texts in passages.items():
        (folder / collection).mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(sorted(texts)):
            path = folder / collection / f"p{number:04}.txt"
            path.write_text(texts[name].strip() + "\n")


def history_of(task: dict[str, Any]) -> list[PriorTurn]:
    found: list[PriorTurn] = []
    asked = None
    for said in task["input"][:-1]:
        if said["speaker"] == "user":
            asked = said["text"]
        elif asked is not None:
            found.append(PriorTurn(turn_id=len(found) + 1, question=asked, answer=said["text"]))
            asked = None
    return found


async def ask(flow: UnifiedFlow, task: dict[str, Any]) -> dict[str, Any]:
    events: list[Observed] = []
    began = perf_counter()
    result: dict[str, Any] = {"id": _id(task), "label": task["answerability"][0]}
    question = task["input"][-1]["text"][:2000]
    try:
        turn = await flow.process(
            _id(task)[:16],
            question,
            history=history_of(task),
            persist=False,
            observer=events.append,
        )
        result |= {"did": decision_of(turn), "said": turn.response, "supported": supported(turn)}
    except PhaseError as error:
        result |= {"did": "failed", "said": str(error), "supported": []}
    calls = [event for event in events if isinstance(event, ModelCalled)]
    asked = [event for event in calls if event.model != "embedded"]
    return result | {
        "question": question,
        "seconds": round(perf_counter() - began, 2),
        "calls": len(asked),
        "tokens": sum((e.prompt_tokens or 0) + (e.completion_tokens or 0) for e in asked),
        "own": any('"abstained": true' in event.reply for event in asked),
    }


def decision_of(turn: Turn) -> str:
    if turn.status == "clarify":
        return "asked back"
    return "abstained" if turn.abstained else "answered"


def supported(turn: Turn) -> list[bool]:
    draft = turn.sections.synthesis
    if draft is None or draft.abstained or turn.status == "clarify":
        return []
    return supported_sentences(draft, turn.question, turn.sections)


async def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    data = json.loads(args.turns.read_text())
    write_documents(data["passages"], args.home / "docs")
    kept = args.home / f"{''.join(c if c.isalnum() else '_' for c in args.model)}.jsonl"
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {each["id"] for each in done}
    wanted = drawn(data["tasks"], args.each, args.seed)
    for collection in sorted({str(task["Collection"]) for task in wanted}):
        left = [t for t in wanted if t["Collection"] == collection and _id(t) not in known]
        if not left:
            continue
        home = args.home / f"home-{collection}"
        home.mkdir(exist_ok=True)
        flow = UnifiedFlow.from_config(
            home,
            docs=[args.home / "docs" / collection],
            model=args.model,
            base_url=args.base_url,
            timeout_s=600.0,
        )
        async with flow:
            for task in left:
                done.append(await ask(flow, task))
                with kept.open("a") as file:
                    file.write(json.dumps(done[-1]) + "\n")
                print(f"{done[-1]['label']:<15}{done[-1]['did']}", file=sys.stderr, flush=True)
    chosen = {_id(task) for task in wanted}
    return [each for each in done if each["id"] in chosen]


def share(values: list[bool]) -> str:
    if not values:
        return "-"
    low, high = interval([float(value) for value in values])
    return f"{sum(values) / len(values):.3f} [{low:.3f}, {high:.3f}] of {len(values)}"


def report(done: list[dict[str, Any]]) -> None:
    for label, right in RIGHT.items():
        own = [each for each in done if each["label"] == label]
        print(f"{label.lower():<15} {right:<11} {share([each['did'] == right for each in own])}")
    print(f"right decision             {share([e['did'] == RIGHT[e['label']] for e in done])}")
    print(f"sentences supported        {share([good for e in done for good in e['supported']])}")
    print(f"failed turns               {sum(each['did'] == 'failed' for each in done)}")
    asked = [each for each in done if each["calls"]]
    print(f"own abstentions            {sum(each['own'] for each in asked)} of {len(asked)} asked")
    for what in ("calls", "tokens", "seconds"):
        print(f"{what:<10} a turn          {sum(each[what] for each in done) / len(done):.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("turns", type=Path)
    parser.add_argument("model")
    parser.add_argument("--base-url")
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, default=HOME)
    args = parser.parse_args()
    report(asyncio.run(run(args)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
