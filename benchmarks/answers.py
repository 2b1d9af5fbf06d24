"""How well the embedded model answers, on any question set of SQuAD v1.1 form.

    python benchmarks/answers.py DATASET          what a user gets: search, then quotes
    python benchmarks/answers.py DATASET --fit    cross-validate the weights and print new ones
                                                  (needs numpy, which nothing else here does)

Every paragraph of the set is a document. A question counts as answered by the first quote if
that quote holds one of the gold answers word for word, and by the first three if they or their
passages do; one that was refused counts as wrong.
Abstention is measured by asking each question of an index without its article.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified_flow.lib.text import sentences
from unified_flow.models.embedded.excerpts import excerpts_of, found_passages
from unified_flow.models.embedded.planning import plan
from unified_flow.models.embedded.quotes import quotes_for
from unified_flow.models.embedded.sentence_ranking import (
    ENOUGH,
    SENTENCE,
    answerability_features,
    measure,
    parse_question,
    rank,
)
from unified_flow.retrieval.index import Index
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import Citation, ToolResult
from unified_flow.turns.sections import Sections, ToolDescription

FOLDS = 12
PENALTY = 0.0005
SEARCH_TOOL = ToolDescription("doc.search", "", {})


@dataclass(frozen=True)
class Question:
    article: str
    text: str
    answers: tuple[str, ...]
    paragraph: str


def questions(dataset: dict[str, Any]) -> list[Question]:
    return [
        Question(
            article["title"],
            asked["question"],
            tuple({answer["text"] for answer in asked["answers"]}),
            paragraph["context"],
        )
        for article in dataset["data"]
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]


def index_of(dataset: dict[str, Any], folder: Path, layout: str, without: str = "") -> Index:
    """The set's paragraphs as files: one each, or one for each article under its title."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    for number, article in enumerate(dataset["data"]):
        if article["title"] == without:
            continue
        texts = [paragraph["context"] for paragraph in article["paragraphs"]]
        if layout == "articles":
            heading = article["title"].replace("_", " ")
            page = "\n\n".join([f"# {heading}", *texts])
            (docs / f"{number}.md").write_text(page + "\n", encoding="utf-8")
        else:
            for place, text in enumerate(texts):
                (docs / f"{number}-{place}.txt").write_text(text + "\n", encoding="utf-8")
    index = Index.open(folder / "index")
    index.update([docs])
    return index


def search(index: Index, question: str) -> list[Passage]:
    """What a turn's first plan searches for."""
    results = []
    for request in plan(question, Sections(tools=(SEARCH_TOOL,))).tool_requests:
        passages = index.search(request.args["query"], request.args["limit"])
        found = {"query": "", "passages": [p.model_dump(mode="json") for p in passages]}
        results.append(ToolResult(tool=request.tool, success=True, result=found))
    return found_passages(results)


def share(values: Iterable[object]) -> float:
    return statistics.fmean(bool(value) for value in values)


def holds(question: Question, text: str) -> bool:
    return any(answer in text for answer in question.answers)


def report(dataset: dict[str, Any], layout: str, folder: Path) -> None:
    asked = questions(dataset)
    index = index_of(dataset, folder / "all", layout)
    found: list[tuple[Citation, ...]] = []
    times = []
    for question in asked:
        started = time.perf_counter()
        found.append(quotes_for(question.text, tuple(search(index, question.text))))
        times.append((time.perf_counter() - started) * 1000)
    first = share(f and holds(q, f[0].quote) for q, f in zip(asked, found, strict=True))
    alone = share(
        f and holds(q, f[0].quote[slice(*sentences(f[0].quote)[-1])])
        for q, f in zip(asked, found, strict=True)
    )
    three = share(
        any(holds(q, f"{each.quote}\n{each.passage}") for each in f)
        for q, f in zip(asked, found, strict=True)
    )
    refused = share(not f for f in found)
    absent = []
    for number, title in enumerate(article["title"] for article in dataset["data"]):
        without = index_of(dataset, folder / f"without-{number}", layout, title)
        own = [question for question in asked if question.article == title]
        absent += [not quotes_for(q.text, tuple(search(without, q.text))) for q in own]
        without.close()
    print(f"{layout}: {len(asked)} questions")
    print(f"  gold answer in the first quote          {first:.3f}  (target 0.80)")
    print(f"    without a sentence carried before it  {alone:.3f}")
    print(f"  gold answer in the three passages       {three:.3f}  (target 0.93)")
    print(f"  refused without the article             {share(absent):.3f}  (target 0.85)")
    print(f"  refused with it                         {refused:.3f}  (target at most 0.05)")
    print(f"  search and quotes, median               {statistics.median(times):.1f} ms")


def fit(dataset: dict[str, Any], folder: Path) -> None:
    """Cross-validated by article over both layouts, then fitted on everything."""
    import numpy as np  # type: ignore[import-not-found]

    asked = questions(dataset)
    titles = [article["title"] for article in dataset["data"]]
    names = list(SENTENCE)
    rows: list[tuple[int, Any, Any, Any]] = []
    evidence: list[tuple[int, bool, list[float]]] = []
    sign_names: list[str] = []
    for layout in ("paragraphs", "articles"):
        index = index_of(dataset, folder / f"fit-{layout}", layout)
        for number, title in enumerate(titles):
            without = index_of(dataset, folder / f"fit-{layout}-{number}", layout, title)
            for question in (q for q in asked if q.article == title):
                for there, where in ((True, index), (False, without)):
                    reads = excerpts_of(search(where, question.text), "en")
                    own = parse_question(question.text, "en")
                    ranked = rank(own, reads)
                    if not ranked:
                        continue
                    signs = answerability_features(ranked[0])
                    sign_names = list(signs)
                    evidence.append((number, there, list(signs.values())))
                    if there:
                        measured = measure(ranked[0].context, reads)
                        gold = np.array([holds(question, s.text) for _, s, _ in measured], float)
                        right = np.array(
                            [" ".join(s.text.split()) in " ".join(question.paragraph.split())
                             for _, s, _ in measured], float)  # fmt: skip
                        matrix = np.array([[f[n] for n in names] for _, _, f in measured])
                        rows.append((number, matrix, gold, gold * right))
            without.close()
    first, three = [], []
    for held_out, fitted in folds(rows, lambda some: choose(np, some)):
        for _, matrix, gold, _ in held_out:
            order = np.argsort(-(matrix @ fitted), kind="stable")
            first.append(gold[order[0]])
            three.append(gold[order[:3]].any())
    total = 2 * len(asked)
    print(
        f"SENTENCE, cross-validated: first {sum(first) / total:.3f}, three {sum(three) / total:.3f}"
    )
    for name, value in zip(names, choose(np, rows), strict=True):
        print(f'    "{name}": {value:.2f},')
    refused: dict[bool, list[bool]] = {True: [], False: []}
    for held_out, fitted in folds(evidence, lambda some: logistic(np, some)):
        for _, there, values in held_out:
            value = fitted[0] + float(np.dot(fitted[1:], values))
            refused[there].append(1 / (1 + np.exp(-value)) < ENOUGH)
    print(
        f"ANSWERABLE, cross-validated at {ENOUGH}: refused without the article "
        f"{share(refused[False]):.3f}, with it {share(refused[True]):.3f}"
    )
    for name, value in zip(["bias", *sign_names], logistic(np, evidence), strict=True):
        print(f'    "{name}": {value:.2f},')


def folds(rows: list[Any], fitted: Callable[[list[Any]], Any]) -> Iterator[tuple[list[Any], Any]]:
    for fold in range(FOLDS):
        held_out = [row for row in rows if row[0] % FOLDS == fold]
        if held_out:
            yield held_out, fitted([row for row in rows if row[0] % FOLDS != fold])


def choose(np: Any, rows: list[Any]) -> Any:
    """Conditional logit by Newton's method, in bounded steps: which sentences are right?"""
    usable = [(matrix, right) for _, matrix, _, right in rows if right.any()]
    weights = np.zeros(usable[0][0].shape[1])
    for _ in range(20):
        gradient = -2 * PENALTY * weights
        curvature = 2 * PENALTY * np.eye(len(weights))
        for matrix, right in usable:
            values = matrix @ weights
            odds = np.exp(values - values.max())
            chance = odds / odds.sum()
            hit = chance * right / (chance * right).sum()
            mean = matrix.T @ chance
            gradient += (matrix.T @ hit - mean) / len(usable)
            curvature += ((matrix.T * chance) @ matrix - np.outer(mean, mean)) / len(usable)
        step = np.linalg.solve(curvature, gradient)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
    return weights


def logistic(np: Any, rows: list[Any]) -> Any:
    matrix = np.array([[1.0, *values] for _, _, values in rows])
    there = np.array([float(there) for _, there, _ in rows])
    weights = np.zeros(matrix.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-(matrix @ weights)))
        ridge = np.diag([0.0, *[0.1] * (matrix.shape[1] - 1)])
        curvature = (matrix.T * (chance * (1 - chance))) @ matrix + ridge
        weights = weights + np.linalg.solve(
            curvature, matrix.T @ (there - chance) - ridge @ weights
        )
    return weights


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path, help="a JSON file of SQuAD v1.1 form")
    parser.add_argument("--fit", action="store_true", help="cross-validate and fit the weights")
    args = parser.parse_args()
    if not args.dataset.exists():
        print(f"skipped: there is no {args.dataset}")
        return 0
    dataset = json.loads(args.dataset.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        if args.fit:
            fit(dataset, Path(folder))
        else:
            for layout in ("paragraphs", "articles"):
                report(dataset, layout, Path(folder) / layout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
