"""Phase 6, by rules: what code can establish of a draft, and what it leaves unchecked."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from unified_flow.lib.text import language_of, words
from unified_flow.lib.text.lexicon import lexicon_of, lexicons
from unified_flow.models.embedded.excerpts import (
    excerpts_of,
    found_passages,
    matching_terms,
)
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.inventions import invented, misquoted
from unified_flow.models.embedded.parsed_question import parse_question
from unified_flow.models.embedded.quotes import one_line
from unified_flow.models.embedded.sources import language_of_sources, texts_of
from unified_flow.models.embedded.statements import (
    is_verbatim,
    of_the_answer,
    own_words,
    statements,
)
from unified_flow.turns.results import Check, Checks, Draft, Verdict
from unified_flow.turns.sections import Sections

_LEFTOVERS = re.compile(r"^\s*[{\[]\s*\"|```json|<\|\w+\|>|\{\{\w+\}\}|</?mark>")
_KEEP_TO_SOURCES = "keep to what the sources say and leave out what the issues name"
_ABOUT_IT = 0.5  # of the question's terms that a passage has which answers it


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
    source, and no source at all though documents were searched. `supported`: each sentence of it
    stands in a source, all but word for word."""

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
    same = language_of_sources(sections, texts) == language_of(f"{query} {draft.response}")
    searched = same and bool(found_passages(sections.coordinator))
    claims = any(not statement.rstrip().endswith("?") for statement in said)
    return Findings(
        misquoted=misquoted(draft, texts),
        invented=invented(draft, said, texts, query),
        sourceless=searched and claims and not draft.citations,
        supported=all(_stands(each, query, sections, texts) for each in said),
    )


def _stands(statement: str, query: str, sections: Sections, texts: list[str]) -> bool:
    """Whether a sentence of a passage that is about the question has all of its terms, in their
    order, and the same small words that turn a meaning round. Where none of those are known, only
    the sentence itself will do."""
    if is_verbatim(one_line(statement), texts):
        return True
    language = language_of_sources(sections, texts)
    if language not in {each.language for each in lexicons()}:
        return False
    lexicon = lexicon_of(language)
    said = [t for t in matching_terms(statement, language) if t not in _own_words(language)]
    small = {word.casefold() for word in words(statement)} & (lexicon.operators | lexicon.negations)
    asked = parse_question(query, language).core
    for excerpt in excerpts_of(found_passages(sections.coordinator), language):
        if asked and sum(term in excerpt.terms for term in asked) < _ABOUT_IT * len(asked):
            continue
        for sentence in excerpt.sentences:
            known = matching_terms(sentence.text, language)
            turned = lexicon.negations & small == lexicon.negations & set(sentence.words)
            own = [term for term in said if term in sentence.terms]
            rest = set(said) - sentence.terms
            same = turned and small <= set(sentence.words) and rest <= excerpt.heading
            if same and own and _in_order(own, known):
                return True
    return False


def _own_words(language: str) -> frozenset[str]:
    return frozenset(matching_terms(of_the_answer(), language))


def _in_order(some: list[str], every: list[str]) -> bool:
    left = iter(every)
    return all(term in left for term in some)
