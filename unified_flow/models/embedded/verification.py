"""Phase 6, by rules: what code can establish of a draft, and what it leaves unchecked."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from unified_flow.models.embedded.excerpts import excerpts_of, found_passages
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.inventions import invented, misquoted, plain_words
from unified_flow.models.embedded.quotes import one_line
from unified_flow.models.embedded.sources import language_of_sources, texts_of
from unified_flow.models.embedded.statements import (
    code_of,
    language_of_draft,
    own_words,
    statements,
)
from unified_flow.turns.results import Check, Checks, Draft, Verdict
from unified_flow.turns.sections import Sections

_LEFTOVERS = re.compile(r"^\s*[{\[]\s*\"|```json|<\|\w+\|>|\{\{\w+\}\}|</?mark>")
_KEEP_TO_SOURCES = "keep to what the sources say and leave out what the issues name"


def verify(query: str, sections: Sections) -> Verdict:
    """The same draft is sent back once at most: rules have no other words for it."""
    draft = sections.synthesis
    if draft is None:
        return _verdict("REVISE", ["there is no draft"], ["write an answer"], coherent=True)
    coherent = _is_coherent(draft)
    if talk_of(query) or draft.abstained:
        if draft.abstained and draft.citations:
            issue, hint = "an abstention with citations", "cite nothing when abstaining"
            return _verdict("REVISE", [issue], [hint], coherent=coherent)
        return _verdict("APPROVE", coherent=coherent, supported=True)
    found = findings(draft, query, sections)
    issues, hints = found.issues, found.hints
    if not coherent:
        issues, hints = [*issues, "leftovers of a format"], [*hints, "write plain text"]
    again = sections.validation is not None and sections.validation.decision == "REVISE"
    if issues and not again:
        return _verdict("REVISE", issues, hints, coherent=coherent, supported=found.check)
    return _verdict("APPROVE", issues, coherent=coherent, supported=found.check)


def _verdict(
    decision: str,
    issues: list[str] | None = None,
    hints: list[str] | None = None,
    *,
    coherent: bool,
    supported: Check = "not checked",
) -> Verdict:
    checks = Checks(
        claims_supported=supported,
        no_hallucinations=supported,
        query_addressed="not checked",
        coherent_format=coherent,
    )
    return Verdict.model_validate(
        {
            "decision": decision,
            "confidence": 0.9 if supported is True else 0.7,
            "checks": checks,
            "issues": issues or [],
            "hints": hints or [],
        }
    )


def _is_coherent(draft: Draft) -> bool:
    """Text without leftovers of a format, and no JSON; what it quotes may hold both."""
    own = own_words(draft)
    if not draft.response.strip() or _LEFTOVERS.search(own):
        return False
    try:
        return not isinstance(json.loads(own), dict)
    except ValueError:
        return True


@dataclass(frozen=True)
class Findings:
    """What is wrong with a draft beyond doubt: quotations, names and numbers that stand in no
    source, and no source at all though documents were searched. `supported`: each sentence of it is
    one of the sources', word for word."""

    misquoted: list[str]
    invented: list[str]
    sourceless: bool
    supported: bool

    @property
    def check(self) -> Check:
        """Whether the sources support the draft, as far as code can tell."""
        return False if self.issues else True if self.supported else "not checked"

    @property
    def issues(self) -> list[str]:
        found = [f"not in the sources: {one_line(quote)}" for quote in self.misquoted]
        found += [f"stands in no source: {name}" for name in self.invented]
        return [*found, "no citation"] if self.sourceless else found

    @property
    def hints(self) -> list[str]:
        """What to do about them, in words that a small model can follow."""
        found = [f"write it without “{name}”" for name in self.invented]
        if self.sourceless:
            found.append(
                "end each sentence with the number of the passage that states it, like [1]"
            )
        return [_KEEP_TO_SOURCES, *found] if self.issues else []


def findings(draft: Draft, query: str, sections: Sections) -> Findings:
    texts = texts_of(sections)
    if not texts:
        return Findings([], [], sourceless=False, supported=False)
    said = statements(draft, texts)
    language = language_of_sources(sections, texts)
    same = language == language_of_draft(draft.response, query)
    searched = same and bool(found_passages(sections.coordinator))
    all_said = statements(draft, texts, introductions=True)
    code = code_of(draft)
    claims = bool(code) or any(not statement.rstrip().endswith("?") for statement in said)
    return Findings(
        misquoted=misquoted(draft, texts, same=same),
        invented=invented(draft, said, texts, query, language, same=same),
        sourceless=searched and claims and not draft.citations,
        supported=not code
        and (
            not all_said
            or _whole_sentences(sections, texts, language).issuperset(map(plain_words, all_said))
        ),
    )


def _whole_sentences(sections: Sections, texts: list[str], language: str) -> frozenset[str]:
    """What a draft can repeat without changing what it says: sentences, and whole short results."""
    excerpts = excerpts_of(found_passages(sections.coordinator), language)
    found = [sentence.text for excerpt in excerpts for sentence in excerpt.sentences]
    return frozenset(map(plain_words, [*found, *texts]))
