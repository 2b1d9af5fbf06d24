"""Drafts as language models write them, faithful and spoilt (`drafts.toml`), as turns."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unified_flow.phases.grounding.citations import cited, weighed
from unified_flow.turns.results import Checks, Claim, Draft, ToolResult, Verdict
from unified_flow.turns.sections import Sections

APPROVED = Verdict(
    decision="APPROVE",
    confidence=1.0,
    checks=Checks(
        claims_supported=True, no_hallucinations=True, query_addressed=True, coherent_format=True
    ),
)


@dataclass(frozen=True)
class WrittenDraft:
    """`kind` is the style of a faithful draft, or what is wrong with a spoilt one; `places` those
    of the passages that state what it says, from 1."""

    topic: str
    kind: str
    question: str
    response: str
    places: tuple[int, ...]
    sections: Sections

    def judged(self) -> tuple[Draft, Verdict]:
        """With its citations, and the verdict of a model that approves of everything."""
        draft = cited(Draft(response=self.response), self.question, self.sections)
        return draft, weighed(APPROVED, self.question, replace(self.sections, synthesis=draft))


def faithful() -> Iterator[WrittenDraft]:
    for topic, sections in _topics():
        for style, question, response, places in topic["faithful"]:
            yield WrittenDraft(topic["name"], style, question, response, tuple(places), sections)


def spoilt() -> Iterator[WrittenDraft]:
    for topic, sections in _topics():
        for kind, question, response in topic["spoilt"]:
            yield WrittenDraft(topic["name"], kind, question, response, (), sections)


def _topics() -> Iterator[tuple[dict[str, Any], Sections]]:
    written = tomllib.loads(Path(__file__).with_name("drafts.toml").read_text(encoding="utf-8"))
    for topic in written["topic"]:
        yield topic, _searched(topic["passages"])


def _searched(passages: list[list[str]]) -> Sections:
    found = [
        {
            "chunk_id": str(place), "path": f"docs/p{place}.md", "line": 1, "end_line": 3,
            "heading": heading, "text": text, "score": round(1 - place / 10, 2),
        }
        for place, (heading, text) in enumerate(passages, 1)
    ]  # fmt: skip
    claims = [
        Claim(claim=str(p["text"]), source=f"{p['path']}:1", confidence=float(str(p["score"])))
        for p in found
    ]
    result = ToolResult(
        tool="doc.search", success=True, result={"query": "", "passages": found}, claims=claims
    )
    return Sections(coordinator=(result,))
