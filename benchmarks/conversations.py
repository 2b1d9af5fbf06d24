"""Whether a question in a conversation finds what it means, by rules alone.

    python benchmarks/conversations.py TURNS.json [--limit N]
    python benchmarks/conversations.py --subjects SQUAD.json

TURNS.json has the form of MTRAG-UN (see decisions.py); a collection's documents are the passages
of its tasks. Printed for first and for later turns: the share of the reference passages among the
first five documents found (recall@5) and how often one is cited; for each label, what was done; the
share of right decisions; failed turns.

With --subjects, each question of a SQuAD v1.1 file is asked by itself and after three questions
about another article: how often its own paragraph comes first. A change of subject should cost at
most 0.02.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from answers import Question, index_of, questions
from decisions import RIGHT, decision_of, history_of, write_documents

from unified_flow.flow import UnifiedFlow
from unified_flow.lib.text.conversation import conversation_words
from unified_flow.models.embedded.planning import search_query
from unified_flow.phases.errors import PhaseError
from unified_flow.retrieval.index import Index
from unified_flow.turns.passage import path_of
from unified_flow.turns.turn import Turn

ANSWERED = {**RIGHT, "PARTIAL": "answered"}
FIRST = 5
EARLIER = 3
SEED = 1


def sources(data: dict[str, Any]) -> dict[tuple[str, str], str]:
    """(collection, document) to the file that write_documents made of it."""
    return {
        (collection, name): f"{collection}/p{number:04}.txt"
        for collection, texts in data["passages"].items()
        for number, name in enumerate(sorted(texts))
    }


def found_in(turn: Turn) -> list[str]:
    passages = [p for r in turn.sections.coordinator for p in r.passages]
    return list(dict.fromkeys(passage.path for passage in passages))


async def score_turns(data: dict[str, Any], folder: Path, limit: int) -> None:
    write_documents(data["passages"], folder / "docs")
    files = sources(data)
    tasks = data["tasks"]
    if limit:
        tasks = tasks[:: max(1, len(tasks) // limit)][:limit]
    did: dict[str, Counter[str]] = defaultdict(Counter)
    recall: dict[str, list[float]] = defaultdict(list)
    cited: dict[str, list[float]] = defaultdict(list)
    for collection in sorted(data["passages"]):
        home = folder / f"home-{collection}"
        home.mkdir()
        docs = folder / "docs" / collection
        async with UnifiedFlow.from_config(home, docs=[docs]) as flow:
            for task in (each for each in tasks if each["Collection"] == collection):
                label, history = task["answerability"][0], history_of(task)
                question = task["input"][-1]["text"][:4000]
                try:
                    turn = await flow.process("s", question, history=history, persist=False)
                except PhaseError:
                    did[label]["failed"] += 1
                    continue
                did[label][decision_of(turn)] += 1
                gold = {files[collection, each["document_id"]] for each in task["contexts"]}
                if gold and ANSWERED[label] == "answered":
                    place = "later" if len(task["input"]) > 1 else "first"
                    hits = gold.intersection(found_in(turn)[:FIRST])
                    recall[place].append(len(hits) / min(FIRST, len(gold)))
                    cited[place].append(
                        not gold.isdisjoint(path_of(c.source) for c in turn.citations)
                    )
    show(did, recall, cited)


def show(
    did: dict[str, Counter[str]], recall: dict[str, list[float]], cited: dict[str, list[float]]
) -> None:
    for place in recall:
        print(f"recall@5, {place} turns  {fmean(recall[place]):.3f}  of {len(recall[place])}")
        print(f"cited, {place} turns     {fmean(cited[place]):.3f}")
    for label, counts in sorted(did.items()):
        shares = (f"{what} {n / counts.total():.3f}" for what, n in counts.most_common())
        print(f"{label:<15} {counts.total():4}  {', '.join(shares)}")
    right = sum(counts[ANSWERED[label]] for label, counts in did.items())
    failed = sum(counts["failed"] for counts in did.values())
    asked = sum(counts.total() for counts in did.values())
    print(f"right decision  {right / asked:.3f}, failed turns {failed}")


def score_subjects(dataset: dict[str, Any], folder: Path) -> None:
    asked = questions(dataset)
    draw = random.Random(SEED)
    with index_of(dataset, folder, "paragraphs") as index:
        plain = fmean(comes_first(index, each, []) for each in asked)
        after = fmean(comes_first(index, each, another(asked, each, draw)) for each in asked)
    print(f"{len(asked)} questions: own paragraph first  {plain:.3f}")
    print(
        f"after {EARLIER} about another article          {after:.3f}  (loses {plain - after:.3f})"
    )


def another(
    asked: list[Question], question: Question, draw: random.Random
) -> list[tuple[str, str]]:
    """Questions and answers about one other article."""
    article = draw.choice([each.article for each in asked if each.article != question.article])
    own = [each for each in asked if each.article == article]
    return [(q.text, answer_of(q)) for q in draw.sample(own, min(EARLIER, len(own)))]


def answer_of(question: Question) -> str:
    """The sentence, roughly, that holds the gold answer."""
    text, answer = question.paragraph, question.answers[0]
    at = text.find(answer)
    end = text.find(". ", at + len(answer))
    return text[text.rfind(". ", 0, at) + 1 : None if end < 0 else end + 1].strip()


def comes_first(index: Index, question: Question, earlier: list[tuple[str, str]]) -> bool:
    found = index.search(search_query(question.text), 1, conversation_words(earlier))
    return bool(found) and " ".join(found[0].text.split()) in " ".join(question.paragraph.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", type=Path, nargs="?")
    parser.add_argument("--subjects", type=Path)
    parser.add_argument("--limit", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.subjects is not None:
            score_subjects(json.loads(args.subjects.read_text()), Path(folder) / "subjects")
        if args.turns is not None:
            asyncio.run(score_turns(json.loads(args.turns.read_text()), Path(folder), args.limit))


if __name__ == "__main__":
    main()
