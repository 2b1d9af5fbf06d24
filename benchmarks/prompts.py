"""How many tokens each phase's prompt takes, for a large model and for a small one.

    python benchmarks/prompts.py [DOCS] [--question TEXT]

The question goes through a flow over DOCS (by default architecture/) whose model answers from a
script; nothing is asked of a server. Tokens are estimated: UTF-8 bytes by four.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from unified_flow.flow import UnifiedFlow
from unified_flow.models import ModelCall, estimate_tokens
from unified_flow.models.prompt import prompt
from unified_flow.models.schema import signature
from unified_flow.models.scripted import ScriptedModel
from unified_flow.wiring import wire

ROOT = Path(__file__).resolve().parents[1]


def script(question: str) -> dict[str, Any]:
    search = {"tool": "doc.search", "args": {"query": question}, "goal_id": "g1"}
    checks = dict.fromkeys(
        ("claims_supported", "no_hallucinations", "query_addressed", "coherent_format"), True
    )
    return {
        "query_analyzer": {
            "resolved_query": question,
            "reference_resolution": {"status": "not_needed"},
            "query_type": "specific_content",
        },
        "reflection": {"decision": "PROCEED", "confidence": 0.9},
        "planner": [
            {"decision": "EXECUTE", "route": "coordinator", "tool_requests": [search]},
            {"decision": "COMPLETE", "route": "synthesis"},
        ],
        "synthesis": {"abstained": False, "response": "It is what the first document says [1]."},
        "validation": {"decision": "APPROVE", "confidence": 0.9, "checks": checks},
    }


async def calls_of(docs: Path, question: str, size: str) -> tuple[list[ModelCall], list[str]]:
    model = ScriptedModel(script(question))
    with tempfile.TemporaryDirectory() as home:
        own: dict[str, Any] = {"extra_models": {"scripted": model}, "model": "scripted"}
        flow = UnifiedFlow(wire(home, docs=[docs], size=size, **own))
        async with flow:
            await flow.process("s", question)
            tools = [signature(tool) for tool in flow.services.toolbox.describe()]
    return model.calls, tools


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("docs", type=Path, nargs="?", default=ROOT / "architecture")
    parser.add_argument("--question", default="How many times may a draft be revised?")
    args = parser.parse_args()
    print(f"{'size':<7}{'phase':<16}{'system':>8}{'user':>8}{'all':>8}")
    for size in ("large", "small"):
        calls, tools = asyncio.run(calls_of(args.docs, args.question, size))
        for call in calls:
            system, user = (estimate_tokens(m["content"]) for m in prompt(call).messages)
            print(f"{size:<7}{call.phase:<16}{system:>8}{user:>8}{system + user:>8}")
        total = sum(map(estimate_tokens, tools))
        print(f"{size:<7}{len(tools)} tools{'':<24}{total:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
