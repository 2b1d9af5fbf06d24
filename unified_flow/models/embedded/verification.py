"""Phase 6: does every statement stand in the sources, and is the question addressed?"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from unified_flow.config.tool_names import DOC_SEARCH
from unified_flow.lib.text import language_of, sentences, terms, words
from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.models.embedded.excerpts import (
    SEARCHES,
    best_kinship,
    excerpts_of,
    found_passages,
    matching_terms,
    sentences_of,
)
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.parsed_question import parse_question
from unified_flow.models.embedded.quotes import one_line
from unified_flow.turns.passage import path_of
from unified_flow.turns.results import Checks, Draft, ToolResult, Verdict
from unified_flow.turns.sections import Sections

_ADDRESSED = 0.3  # share of the question's terms that answer and sources have
_LEFTOVERS = re.compile(r"^\s*[{\[]\s*\"|```json|<\|\w+\|>|\{\{\w+\}\}")
KEEP_TO_SOURCES = "keep to what the sources say and leave out what the issues name"
_SUPPORTED = 0.6  # share of a statement's terms that its sources have
_FEW = 3  # terms, of which one may be the writer's own word
_QUOTED = re.compile(r"“([^“”]+)”")
# The marks of a list; "308" and "3.5 million" are none.
_LISTED = re.compile(r"\A(?:[-*. ]+|\d{1,3}[.)](?:\s+|\Z))+")
_SOURCE = re.compile(r"\(?[^\s()]+(?::p?|#L)\d+\)?:?")
_MARK = re.compile(r"\s*\[\d+\]")
_WORD = re.compile(r"\d+(?:[.,]\d+)*\w*|\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_READ = 4_000  # characters of the sources, to tell their language
_CHECKED = re.compile(r"\b(?:[A-ZÅÄÖ][\w-]*|\d[\d.,]*\w*)\b")


def verify(query: str, sections: Sections) -> Verdict:
    draft = sections.synthesis
    if draft is None:
        return _verdict("REVISE", ["there is no draft"], ["write an answer"])
    texts = [one_line(text) for text in dict.fromkeys(source_texts(sections.coordinator))]
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
    if any(result.tool != DOC_SEARCH for result in sections.coordinator):
        return True
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else query
    cited = {path_of(citation.source) for citation in draft.citations}
    found = found_passages(sections.coordinator)
    passages = [each for each in found if each.path in cited or not cited]
    language = language_of(" ".join(p.text[:1_000] for p in passages[:3]) or draft.response)
    question = parse_question(asked, language)
    known = frozenset(matching_terms(draft.response, language)).union(
        *(excerpt.heading for excerpt in excerpts_of(passages, language)),
        *(s.terms for p in passages for s in sentences_of(p.text, language)),
    )
    if not question.core:
        return True
    return sum(has_match(term, known) for term in question.core) >= _ADDRESSED * len(question.core)


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


@dataclass(frozen=True)
class Faults:
    """Quotes, statements, and names and numbers that the sources do not have; and whether no
    sentence of theirs could be cited for any of it, which alone is no reason to reject it."""

    misquoted: list[str]
    unsupported: list[str]
    invented: list[str]
    uncited: bool

    @property
    def are_serious(self) -> bool:
        return bool(self.misquoted or self.unsupported or self.invented)

    @property
    def issues(self) -> list[str]:
        found = [f"not in the sources: {one_line(quote)}" for quote in self.misquoted]
        found += [f"not supported by the sources: {statement}" for statement in self.unsupported]
        found += [f"stands in no source: {name}" for name in self.invented]
        return [*found, "no citation"] if self.uncited else found

    @property
    def hints(self) -> list[str]:
        """What to do about them, in words that a small model can follow."""
        return [KEEP_TO_SOURCES, *(f"write it without “{name}”" for name in self.invented)]


def faults(draft: Draft, texts: list[str], query: str, results: Iterable[ToolResult]) -> Faults:
    """`texts` are the sources, each on one line (`quotes.shown`); `results` what tools brought.

    Words are held against sources that were searched, in their own language. Of anything else (a
    sum, a note taken) only names and numbers are, and of an answer in another language numbers
    alone: what is a name there, only its readers know.
    """
    language = language_of(f"{query} {draft.response}")
    searched = any(result.tool in SEARCHES for result in results)
    same = language_of(" ".join(texts)[:_READ]) == language
    told = searched and same
    found = invented(draft, texts, query)
    return Faults(
        misquoted=[c.quote for c in draft.citations if not is_verbatim(one_line(c.quote), texts)],
        unsupported=_unsupported(draft, texts, query, language) if told else [],
        invented=found if same else [word for word in found if word[0].isdigit()],
        uncited=told and not draft.citations and bool(statements(draft, texts)),
    )


def of_the_answer() -> str:
    """Words with which an answer tells of itself and of its sources, and not from them."""
    return " ".join(sorted(any_language().of_the_answer))


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


def is_verbatim(quote: str, texts: Iterable[str]) -> bool:
    return bool(quote) and any(quote in text for text in texts)


def statements(draft: Draft, texts: list[str]) -> list[str]:
    """What the response says besides quotes, sources and the model's own set phrases."""
    rest = draft.response
    for match in _QUOTED.finditer(draft.response):
        if is_verbatim(one_line(match.group(1)), texts):
            rest = rest.replace(match.group(), " ")
    for citation in draft.citations:
        rest = rest.replace(citation.quote, " ")
        if path_of(citation.source) in texts:  # also one with spaces or parentheses in it
            rest = rest.replace(citation.source, " ")
    every = any_language()
    courtesy = rf"(?:{every.please}\s+)?{every.closing}\b[^.!?]*[.!?]?"  # "Let me know …"
    rest = _MARK.sub("", _SOURCE.sub(" ", rest))
    rest = re.sub(courtesy, " ", rest, flags=re.IGNORECASE)
    own = tuple(
        beginning
        for each in lexicons()
        if each.phrases
        for beginning in each.phrases.beginnings()
        if beginning
    )
    return [
        statement
        for start, end in sentences(rest)
        if (statement := _LISTED.sub("", rest[start:end])) and not statement.startswith(own)
    ]


def _unsupported(draft: Draft, texts: list[str], query: str, language: str) -> list[str]:
    """Statements that no two sources have between them."""
    own = [s for s in statements(draft, texts) if not is_verbatim(one_line(s), texts)]
    known = [frozenset(matching_terms(text, language)) for text in texts]
    asked = frozenset(matching_terms(f"{query} {of_the_answer()}", language))
    return [
        one_line(statement)
        for statement in own
        if not _stands_on_two(set(matching_terms(statement, language)), asked, known)
    ]


def _stands_on_two(terms: set[str], asked: frozenset[str], known: Sequence[frozenset[str]]) -> bool:
    said = terms - asked
    for number in (term for term in said if term[0].isdigit()):
        # A number of another matter proves nothing: something else of the statement is beside it.
        beside = terms - {number} or terms
        if not any(number in each and beside & each for each in known):
            return False
    left = set(said)
    for _ in range(2):
        best = max(
            known, key=lambda each: sum(has_match(t, each) for t in left), default=frozenset()
        )
        left -= {term for term in left if has_match(term, best)}
    return covers_most(len(said) - len(left), len(said))


def covers_most(found: int, of: int) -> bool:
    """Of a statement's terms: most, and of a few all but one, for there are synonyms."""
    return found >= (of - 1 if 1 < of <= _FEW else _SUPPORTED * of)


def has_match(term: str, known: frozenset[str]) -> bool:
    return term in known or best_kinship(term, known) > 0


def invented(draft: Draft, texts: list[str], query: str) -> list[str]:
    """Names and numbers of the response that no source and no question has, as whole words."""
    everything = " ".join([*texts, query]).casefold()
    known = {_plain(word) for word in _WORD.findall(everything)}
    known.update(matching_terms(everything, language_of(everything[:_READ])))  # "nine" as 9
    found = []
    for statement in statements(draft, texts):
        for place, match in enumerate(_CHECKED.finditer(statement)):
            word = match.group().strip(".,")
            opening = place == 0 and statement.startswith(word) and not word[0].isdigit()
            parts = [_plain(part) for part in _WORD.findall(word.casefold())]
            if word and not opening and not all(_is_known(part, known) for part in parts):
                found.append(word)
    return list(dict.fromkeys(found))


def _plain(word: str) -> str:
    """3,500 and 3500 are one number, and so are 12 and 12th."""
    number = _NUMBER.match(word)
    return number.group().replace(",", "") if number else word


def _is_known(word: str, known: Collection[str]) -> bool:
    return any(each in known for each in (word, f"{word}s", word.removesuffix("s")))
