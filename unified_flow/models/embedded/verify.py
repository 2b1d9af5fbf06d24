"""Phase 6: does every statement stand in the sources, and is the question addressed?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from unified_flow.lib.text import language_of, terms, words
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.matching import matching_terms
from unified_flow.models.embedded.passages import SEARCH, analysed, passages_of, read_passages
from unified_flow.models.embedded.question import read_question
from unified_flow.models.embedded.quotes import shown
from unified_flow.models.embedded.statements import faults, known_in, source_texts
from unified_flow.turns.passage import path_of
from unified_flow.turns.results import Checks, Draft, Verdict
from unified_flow.turns.sections import Sections

_ADDRESSED = 0.3  # share of the question's terms that answer and sources have
_LEFTOVERS = re.compile(r"^\s*[{\[]\s*\"|```json|<\|\w+\|>|\{\{\w+\}\}")


def verify(query: str, sections: Sections) -> Verdict:
    draft = sections.synthesis
    if draft is None:
        return _verdict("REVISE", ["there is no draft"], ["write an answer"])
    texts = [shown(text) for text in dict.fromkeys(source_texts(sections.coordinator))]
    formatted = _is_coherent(draft)
    if talk_of(query) or draft.abstained:
        issues = (
            []
            if formatted and not (draft.abstained and draft.citations)
            else ["an abstention with citations"]
        )
        if issues:
            return _verdict("REVISE", issues, ["cite nothing when abstaining"], coherent=False)
        return _verdict("APPROVE", confidence=0.9)
    found = faults(draft, texts, query, sections.coordinator)
    addressed = _is_addressed(query, draft, sections)
    issues = found.issues
    if not formatted:
        issues.append("leftovers of a format in the response")
    checks = Checks(
        claims_supported=not (found.misquoted or found.unsupported or found.uncited),
        no_hallucinations=not found.invented,
        query_addressed=addressed,
        coherent_format=formatted,
    )
    if found.are_serious or not formatted:
        return Verdict(
            decision="REVISE", confidence=0.8, checks=checks, issues=issues, hints=found.hints
        )
    if not addressed:
        missing = " ".join(word for word in words(query) if terms(word, language_of(query)))
        return Verdict(
            decision="RETRY", confidence=0.7, checks=checks,
            issues=["the answer has little to do with the question"], hints=[missing],
        )  # fmt: skip
    top = max((citation.score for citation in draft.citations), default=0.0)
    return Verdict(
        decision="APPROVE", confidence=round(0.5 + top / 2, 4), checks=checks, issues=issues
    )


def _verdict(
    decision: str,
    issues: Iterable[str] = (),
    hints: Iterable[str] = (),
    *,
    confidence: float = 0.8,
    coherent: bool = True,
) -> Verdict:
    good = decision == "APPROVE"
    return Verdict.model_validate(
        {
            "decision": decision,
            "confidence": confidence,
            "checks": {
                "claims_supported": True,
                "no_hallucinations": True,
                "query_addressed": good,
                "coherent_format": coherent,
            },
            "issues": list(issues),
            "hints": list(hints),
        }
    )


def _is_addressed(query: str, draft: Draft, sections: Sections) -> bool:
    """The question's terms in the answer, or in the passages that it was taken from."""
    if any(result.tool != SEARCH for result in sections.coordinator):
        return True
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else query
    cited = {path_of(citation.source) for citation in draft.citations}
    found = passages_of(sections.coordinator)
    passages = [each for each in found if each.path in cited or not cited]
    language = language_of(" ".join(p.text[:1_000] for p in passages[:3]) or draft.response)
    question = read_question(asked, language)
    known = frozenset(matching_terms(draft.response, language)).union(
        *(read.heading for read in read_passages(passages, language)),
        *(s.known for p in passages for s in analysed(p.text, language)),
    )
    if not question.core:
        return True
    return sum(known_in(term, known) for term in question.core) >= _ADDRESSED * len(question.core)


def _is_coherent(draft: Draft) -> bool:
    return (
        bool(draft.response.strip())
        and not _LEFTOVERS.search(draft.response)
        and not _is_json(draft.response)
    )


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
