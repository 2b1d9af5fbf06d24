"""Who does a phase best: rules, or a language model. The figures behind the property `size`.

    python benchmarks/phases.py DATASET MODEL [--sample 12] [--phase reflection]

DATASET is of SQuAD form; MODEL as `--model` takes it, or `embedded` for the rules alone. Both get
the same calls, made from the packaged recipes. What counts as right:

query_analyzer  the question, as rewritten, still finds the gold passage among the first five
reflection      PROCEED for the set's questions, CLARIFY for the ten below, which nobody can answer
planner         first EXECUTE with searches that find the gold passage, then COMPLETE with it found
validation      APPROVE for the gold sentence, anything else for a sentence of another article
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from pydantic import BaseModel

from unified_flow.config.settings import EMBEDDED
from unified_flow.engine.services import Services
from unified_flow.errors import ModelError
from unified_flow.evaluation.answers import contained
from unified_flow.evaluation.datasets import DatasetQuestion, corpus_of, draw, read_dataset
from unified_flow.lib.text import sentences
from unified_flow.models import ModelCall
from unified_flow.models.embedded.analysis import analyze, reflect
from unified_flow.models.embedded.excerpts import found_passages
from unified_flow.models.embedded.planning import plan
from unified_flow.models.reply import parse_reply
from unified_flow.phases.grounding.citations import cited
from unified_flow.turns.results import (
    Draft,
    Plan,
    QueryAnalysis,
    Reflection,
    ToolRequest,
    ToolResult,
    Verdict,
)
from unified_flow.turns.sections import Sections
from unified_flow.wiring import wire

T = TypeVar("T", bound=BaseModel)

UNCLEAR = (
    "And the other one?", "What about it?", "Why?", "Is that so?", "Which of them was it?",
    "How many did they have then?", "What did he say to her about that?", "Compare the two.",
    "Can you do the same for the second?", "And before that?",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One decision and how to judge it."""

    phase: str
    query: str
    output: type[BaseModel]
    sections: Sections
    is_right: Callable[[Any], bool]


@dataclass
class Tally:
    right: int = 0
    asked: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Bench:
    def __init__(self, services: Services) -> None:
        self.services = services

    async def search(self, requests: Sequence[ToolRequest]) -> tuple[ToolResult, ...]:
        results = []
        for request in requests:
            tool, args = self.services.toolbox.check(request)
            output = await self.services.toolbox.call(tool, args)
            results.append(
                ToolResult(
                    tool=request.tool, goal_id=request.goal_id, success=True,
                    result=output.result, claims=output.claims,
                )
            )  # fmt: skip
        return tuple(results)

    async def finds(self, requests: Sequence[ToolRequest], question: DatasetQuestion) -> bool:
        try:
            found = found_passages(await self.search(requests))
        except Exception:  # noqa: BLE001 - a plan that cannot be carried out is a wrong one
            return False
        return any(contained(each.text, question.answers) for each in found[:5])

    async def ask(self, model: str, case: Case, tally: Tally) -> Any:
        recipe = self.services.recipe(case.phase)
        call = ModelCall(
            phase=case.phase, output=case.output, prompt=recipe.prompt, query=case.query,
            sections=case.sections.only(recipe.head.reads), temperature=recipe.head.temperature,
            max_tokens=recipe.head.token_budget, budgets=recipe.head.budgets,
            top_p=recipe.head.top_p,
        )  # fmt: skip
        started = perf_counter()
        try:
            reply = await self.services.models.named(model).complete(call)
            tally.tokens += (reply.prompt_tokens or 0) + (reply.completion_tokens or 0)
            return parse_reply(reply.text, case.output)
        except ModelError:
            return None  # no decision is a wrong one
        finally:
            tally.asked += 1
            tally.seconds += perf_counter() - started

    async def cases(self, questions: Sequence[DatasetQuestion]) -> AsyncIterator[Case]:
        tools = self.services.toolbox.describe(personal=False)
        for text in UNCLEAR:
            unclear = Sections(query_analyzer=analyze(text, Sections()))
            yield Case(
                "reflection", text, Reflection, unclear, lambda said: said.decision == "CLARIFY"
            )
        for place, question in enumerate(questions):
            text = question.text
            known = analyze(text, Sections())
            so_far = Sections(query_analyzer=known)
            yield Case("query_analyzer", text, QueryAnalysis, Sections(), self._rewritten(question))
            yield Case(
                "reflection", text, Reflection, so_far, lambda said: said.decision == "PROCEED"
            )
            clear = reflect(text, so_far)
            begun = Sections(query_analyzer=known, reflection=clear, tools=tools)
            yield Case("planner", text, Plan, begun, self._executes(question))
            requests = plan(text, begun).tool_requests
            found = await self.search(requests)
            read = Sections(
                query_analyzer=known, reflection=clear, tools=tools, planner=plan(text, begun),
                coordinator=found,
            )  # fmt: skip
            yield Case("planner", text, Plan, read, lambda said: said.decision == "COMPLETE")
            own = _gold_sentence(found_passages(found), question)
            other = questions[(place + 1) % len(questions)]
            strange = found_passages(await self.search([_search(other.text)]))
            for sentence, good in ((own, True), (_gold_sentence(strange, other), False)):
                if sentence:
                    draft = cited(Draft(response=sentence), text, read)
                    judged = Sections(query_analyzer=known, coordinator=found, synthesis=draft)
                    yield Case("validation", text, Verdict, judged, _judges(good))

    def _rewritten(self, question: DatasetQuestion) -> Callable[[Any], Any]:
        return lambda said: self.finds([_search(said.resolved_query)], question)

    def _executes(self, question: DatasetQuestion) -> Callable[[Any], Any]:
        return lambda said: self.finds(said.tool_requests, question)


def _search(query: str) -> ToolRequest:
    return ToolRequest(tool="doc.search", args={"query": query[:1000]}, goal_id="g1")


def _judges(good: bool) -> Callable[[Any], bool]:
    return lambda said: (said.decision == "APPROVE") is good


def _gold_sentence(passages: Sequence[Any], question: DatasetQuestion) -> str | None:
    for passage in passages:
        for start, end in sentences(passage.text):
            if contained(passage.text[start:end], question.answers):
                return str(passage.text[start:end])
    return None


async def run(args: argparse.Namespace, home: Path) -> None:
    data = read_dataset(args.dataset)
    corpus = corpus_of(data, home / "corpus")
    services = wire(home, docs=[folder for folders in corpus.values() for folder in folders])
    bench = Bench(services)
    names = list(dict.fromkeys([EMBEDDED, args.model]))
    found: dict[tuple[str, str], Tally] = {}
    async for case in bench.cases(draw(data, args.sample, args.seed, 0.0)):
        if args.phase and case.phase not in args.phase:
            continue
        for name in names:
            tally = found.setdefault((case.phase, name), Tally())
            said = await bench.ask(name, case, tally)
            right = said is not None and case.is_right(said)
            tally.right += await right if asyncio.iscoroutine(right) else right
    await services.aclose()
    print(f"{'phase':<16}{'model':<12}{'right':>9}{'tokens':>9}{'seconds':>9}")
    for (phase, name), tally in sorted(found.items()):
        each = max(1, tally.asked)
        print(
            f"{phase:<16}{name.rpartition('/')[2][:11]:<12}{tally.right:>5}/{tally.asked:<3}"
            f"{tally.tokens / each:>9.0f}{tally.seconds / each:>9.2f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("model")
    parser.add_argument("--sample", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--phase", action="append", help="only that one; may be given again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "unified_flow.toml").write_text("timeout_s = 600.0\n")
        asyncio.run(run(args, home))
    return 0


if __name__ == "__main__":
    sys.exit(main())
