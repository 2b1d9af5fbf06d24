"""Phase 6: does every statement stand in the sources, and is the question addressed?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.matching import closest, matching_terms
from unified_flow.models.embedded.passages import SEARCH, analysed, passages_of, read_passages
from unified_flow.models.embedded.phrases import ALL
from unified_flow.models.embedded.question import read_question
from unified_flow.models.embedded.quotes import shown
from unified_flow.results import Checks, Draft, ToolResult, Verdict
from unified_flow.retrieval import path_of
from unified_flow.sections import Sections
from unified_flow.text import language_of, sentences, terms, words

_QUOTED = re.compile(r"“([^“”]+)”")
_SOURCE = re.compile(r"\(?[^\s()]+(?::p?|#L)\d+\)?:?")
_CHECKED = re.compile(r"\b(?:[A-ZÅÄÖ][\w-]*|\d[\d.,]*\w*)\b")
_SUPPORTED = 0.6  # share of a statement's terms that its sources have
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
    misquoted = [c.quote for c in draft.citations if not _stands(shown(c.quote), texts)]
    unsupported = _unsupported(draft, texts, query)
    invented = _invented(draft, texts, query)
    addressed = _is_addressed(query, draft, sections)
    issues = [f"not in the sources: {shown(quote)}" for quote in misquoted]
    issues += [f"not supported by the sources: {statement}" for statement in unsupported]
    issues += [f"stands in no source: {name}" for name in invented]
    if not draft.citations:
        issues.append("no citation")
    if not formatted:
        issues.append("leftovers of a format in the response")
    checks = Checks(
        claims_supported=not (misquoted or unsupported) and bool(draft.citations),
        no_hallucinations=not invented,
        query_addressed=addressed,
        coherent_format=formatted,
    )
    if issues:
        hints = ["keep to what the sources say and leave out what the issues name"]
        return Verdict(decision="REVISE", confidence=0.8, checks=checks, issues=issues, hints=hints)
    if not addressed:
        missing = " ".join(word for word in words(query) if terms(word, language_of(query)))
        return Verdict(
            decision="RETRY", confidence=0.7, checks=checks,
            issues=["the answer has little to do with the question"], hints=[missing],
        )  # fmt: skip
    top = max((citation.score for citation in draft.citations), default=0.0)
    return Verdict(decision="APPROVE", confidence=round(0.5 + top / 2, 4), checks=checks)


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


def source_texts(results: Iterable[ToolResult]) -> list[str]:
    """Every text that a tool brought, whatever its form, and nothing that only looks like one."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    for result in results:
        if isinstance(result.result, dict):
            collect({k: v for k, v in result.result.items() if k not in ("query", "pattern")})
        else:
            collect(result.result)
        found += [claim.claim for claim in result.claims]
    return found


def _stands(quote: str, texts: Iterable[str]) -> bool:
    return bool(quote) and any(quote in text for text in texts)


def _statements(draft: Draft, texts: list[str]) -> list[str]:
    """What the response says besides quotes, sources and the model's own set phrases."""
    rest = draft.response
    for match in _QUOTED.finditer(draft.response):
        if _stands(shown(match.group(1)), texts):
            rest = rest.replace(match.group(), " ")
    for citation in draft.citations:
        rest = rest.replace(citation.quote, " ")
        if path_of(citation.source) in texts:  # also one with spaces or parentheses in it
            rest = rest.replace(citation.source, " ")
    rest = _SOURCE.sub(" ", rest)
    own = tuple(beginning for phrases in ALL for beginning in phrases.own() if beginning)
    return [
        statement
        for start, end in sentences(rest)
        if (statement := rest[start:end].lstrip("-*0123456789. ")) and not statement.startswith(own)
    ]


def _unsupported(draft: Draft, texts: list[str], query: str) -> list[str]:
    language = language_of(query)
    statements = [s for s in _statements(draft, texts) if not _stands(shown(s), texts)]
    if not statements:
        return []
    known = [frozenset(matching_terms(text, language)) for text in texts]
    asked = frozenset(matching_terms(query, language))
    found = []
    for statement in statements:
        said = set(matching_terms(statement, language)) - asked
        best = max((sum(_known(t, each) for t in said) for each in known), default=0)
        if best < _SUPPORTED * len(said):
            found.append(shown(statement))
    return found


def _known(term: str, known: frozenset[str]) -> bool:
    return term in known or closest(term, known) > 0


def _invented(draft: Draft, texts: list[str], query: str) -> list[str]:
    """Names and numbers of the response that no source and no question has."""
    everything = " ".join([*texts, query]).casefold()
    found = []
    for statement in _statements(draft, texts):
        for place, match in enumerate(_CHECKED.finditer(statement)):
            word = match.group().strip(".,")
            opening = place == 0 and statement.startswith(word) and not word[0].isdigit()
            if word and not opening and word.casefold() not in everything:
                found.append(word)
    return list(dict.fromkeys(found))


def _is_addressed(query: str, draft: Draft, sections: Sections) -> bool:
    """The question's terms in the answer, or in the passages that it was taken from."""
    if any(result.tool != SEARCH for result in sections.coordinator):
        return True
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else query
    cited = {path_of(citation.source) for citation in draft.citations}
    passages = [p for p in passages_of(sections.coordinator) if p.path in cited]
    language = language_of(" ".join(p.text[:1_000] for p in passages[:3]) or draft.response)
    question = read_question(asked, language)
    known = frozenset(matching_terms(draft.response, language)).union(
        *(read.heading for read in read_passages(passages, language)),
        *(s.known for p in passages for s in analysed(p.text, language)),
    )
    if not question.core:
        return True
    return sum(_known(term, known) for term in question.core) >= _ADDRESSED * len(question.core)


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
