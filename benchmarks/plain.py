"""The plain pipeline, to be compared with the flow: the best four passages and one prompt.

    python benchmarks/plain.py DATASET --model NAME [--base-url URL] [--sample 30] [--home DIR]

The question set, the sample and the share of unanswerable questions are those of `unified-flow eval
run`, and so are the index and the model. The result is a run beside the flow's, for `unified-flow
eval compare`; the same command goes on with a run that was stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from asyncio import to_thread
from hashlib import sha256
from pathlib import Path
from time import perf_counter

from pydantic import BaseModel, Field

from unified_flow.config.settings import EMBEDDED
from unified_flow.engine.services import Services
from unified_flow.evaluation.answers import Cost, EvaluatedAnswer, Trouble, contained
from unified_flow.evaluation.datasets import DatasetQuestion, corpus_of, draw, read_dataset
from unified_flow.evaluation.flows import Flows, evaluations
from unified_flow.evaluation.runs import Run, Spec, spec_of
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.clock import elapsed_ms
from unified_flow.models import ModelCall
from unified_flow.models.reply import parse_reply
from unified_flow.turns.results import Claim, ToolResult
from unified_flow.turns.sections import Sections

PASSAGES = 4
PHASE = "plain"
TOKENS = 400
TEMPERATURE = 0.0
PROMPT = """\
Answer the question from the documents only, in one short sentence that begins with the answer
itself. If they do not hold the answer, say so and set found to false."""


class PlainAnswer(BaseModel):
    response: str = Field(min_length=1)
    found: bool = Field(description="false if the documents do not hold the answer")


async def ask_plainly(flow: UnifiedFlow, question: DatasetQuestion) -> EvaluatedAnswer:
    """By the same documents and the same model as the flow's voice. A failure counts as failed."""
    services = flow.services
    started = perf_counter()
    said, trouble = None, None
    passages: list[str] = []
    cost = Cost(visits=1, calls=1)
    try:
        sections, passages = await _sections(services, question.text)
        said, cost = await _said(services, question.text, sections)
    except Exception as exc:  # noqa: BLE001 - whatever it is, the next question is asked
        trouble = Trouble(error_type=type(exc).__name__, message=str(exc))
    took = round(elapsed_ms(started), 3)
    return EvaluatedAnswer(
        id=question.id,
        question=question.text,
        answers=list(question.answers),
        unanswerable=question.unanswerable,
        status="failed" if said is None else "answered",
        response=said.response if said else "",
        abstained=said is not None and not said.found,
        retrieved=any(contained(text, question.answers) for text in passages),
        trouble=trouble,
        duration_ms=took,
        phases={PHASE: cost.model_copy(update={"duration_ms": took})},
    )


def voice_of(services: Services) -> str:
    """The model that answers, which is not the embedded one: that takes no prompt."""
    name = services.models.name_of(services.recipe("synthesis").head) or EMBEDDED
    if name == EMBEDDED:
        raise SystemExit("the plain pipeline needs a language model: name one with --model NAME")
    return name


async def _sections(services: Services, query: str) -> tuple[Sections, list[str]]:
    if services.documents is None:
        return Sections(), []
    passages = await to_thread(services.documents.search, query, PASSAGES)
    claims = [Claim(claim=p.text, confidence=p.score, source=p.source()) for p in passages]
    result = ToolResult(tool="doc.search", success=True, claims=claims)
    return Sections(coordinator=(result,)), [passage.text for passage in passages]


async def _said(services: Services, query: str, sections: Sections) -> tuple[PlainAnswer, Cost]:
    model = services.models.named(voice_of(services))
    reply = await model.complete(
        ModelCall(
            phase=PHASE,
            output=PlainAnswer,
            prompt=PROMPT,
            query=query,
            sections=sections,
            temperature=TEMPERATURE,
            max_tokens=TOKENS,
        )
    )
    cost = Cost(
        visits=1,
        calls=1,
        prompt_tokens=reply.prompt_tokens or 0,
        completion_tokens=reply.completion_tokens or 0,
    )
    return parse_reply(reply.text, PlainAnswer), cost


def plain_spec(spec: Spec) -> Spec:
    """`spec` with the one prompt in place of the phases."""
    recipe = sha256(PROMPT.encode()).hexdigest()[:16]
    return spec.model_copy(update={"phases": {PHASE: {"model": spec.model, "recipe": recipe}}})


async def run(args: argparse.Namespace) -> Run:
    dataset = read_dataset(args.dataset)
    root = evaluations(args.home)
    corpus = corpus_of(dataset, root / "corpora")
    drawn = args.sample, args.seed, args.unanswerable
    questions = draw(dataset, *drawn)
    flows = Flows(
        args.home,
        corpus,
        f"evaluation-{dataset.digest[:12]}",
        model=args.model,
        base_url=args.base_url,
    )
    try:
        voice_of(flows.of().services)
        if (documents := flows.of().services.documents) is not None:
            documents.refresh()
        spec = plain_spec(spec_of(dataset, flows.of().services, *drawn))
        with Run.open(root, f"{spec.name}-plain", spec) as opened:
            for question in questions:
                if question.id not in opened.answers:
                    flow = flows.of(question.group if question.left_out else "")
                    opened.add(await ask_plainly(flow, question))
    finally:
        await flows.aclose()
    return opened


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", help="as `unified-flow ask` takes it")
    parser.add_argument("--base-url")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unanswerable", type=float, default=0.0)
    parser.add_argument("--home", type=Path)
    done = asyncio.run(run(parser.parse_args()))
    failed = sum(answer.status == "failed" for answer in done.answers.values())
    print(json.dumps({"run": done.folder.name, "questions": len(done.answers), "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
