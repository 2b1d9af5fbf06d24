"""Phase 6: do the sources support every statement, and does the answer address the question?"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from unified_flow.config.tool_names import DOC_SEARCH
from unified_flow.lib.text import language_of, sentences, terms, words
from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.models.embedded.excerpts import (
    SEARCHES,
    best_kinship,
    excerpts_of,
    found_passages,
    language_of_passages,
    matching_terms,
)
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.parsed_question import parse_question
from unified_flow.models.embedded.quotes import one_line
from unified_flow.turns.passage import path_of, title_of
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
        return _revise("there is no draft", "write an answer")
    texts = [one_line(text) for text in dict.fromkeys(source_texts(sections.coordinator))]
    formatted = _is_coherent(draft)
    if talk_of(query) or draft.abstained:
        if not formatted or (draft.abstained and draft.citations):
            return _revise("an abstention with citations", "cite nothing when abstaining", False)
        return Verdict(decision="APPROVE", confidence=0.9, checks=_checks())
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


def _revise(issue: str, hint: str, coherent: bool = True) -> Verdict:
    return Verdict(
        decision="REVISE",
        confidence=0.8,
        checks=_checks(query_addressed=False, coherent_format=coherent),
        issues=[issue],
        hints=[hint],
    )


def _checks(*, query_addressed: bool = True, coherent_format: bool = True) -> Checks:
    return Checks(
        claims_supported=True,
        no_hallucinations=True,
        query_addressed=query_addressed,
        coherent_format=coherent_format,
    )


def _is_addressed(query: str, draft: Draft, sections: Sections) -> bool:
    """The question's terms in the answer, or in the passages that it was taken from."""
    if any(result.tool != DOC_SEARCH for result in sections.coordinator):
        return True
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else query
    cited = {path_of(citation.source) for citation in draft.citations}
    found = found_passages(sections.coordinator)
    passages = [each for each in found if each.path in cited or not cited]
    language = language_of_passages(passages) if passages else language_of(draft.response)
    question = parse_question(asked, language)
    known = frozenset(matching_terms(draft.response, language)).union(
        *(
            excerpt.heading.union(*(sentence.terms for sentence in excerpt.sentences))
            for excerpt in excerpts_of(passages, language)
        )
    )
    if not question.core:
        return True
    return sum(has_match(term, known) for term in question.core) >= _ADDRESSED * len(question.core)


def _is_coherent(draft: Draft) -> bool:
    """Text without leftovers of a format, and no JSON."""
    if not draft.response.strip() or _LEFTOVERS.search(draft.response):
        return False
    try:
        return not isinstance(json.loads(draft.response), dict)
    except ValueError:
        return True


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
    """`texts` are the sources, each on one line; `results` are those of the tools.

    Words are checked against sources that were searched, if answer and sources have one language.
    Against other results (a sum, a stored note) only names and numbers are, and in an answer in
    another language numbers alone, since what is a name depends on the language.
    """
    language = language_of(f"{query} {draft.response}")
    searched = any(result.tool in SEARCHES for result in results)
    same = language_of(" ".join(texts)[:_READ]) == language
    comparable = searched and same
    found = invented(draft, texts, query)
    return Faults(
        misquoted=[c.quote for c in draft.citations if not is_verbatim(one_line(c.quote), texts)],
        unsupported=_unsupported(draft, texts, query, language) if comparable else [],
        invented=found if same else [word for word in found if word[0].isdigit()],
        uncited=comparable and not draft.citations and bool(statements(draft, texts)),
    )


def of_the_answer() -> str:
    """Words with which an answer speaks of itself and of its sources."""
    return " ".join(sorted(any_language().of_the_answer))


def source_texts(results: Iterable[ToolResult]) -> list[str]:
    """Every string in the results, but for what the tool was asked for."""
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


def own_words(draft: Draft) -> str:
    """The response without the passages that it quotes whole, and what stands above each."""
    rest = draft.response
    for citation in draft.citations:
        if citation.passage and citation.passage in rest:
            rest = rest.replace(citation.passage, " ").replace(
                title_of(citation.heading, citation.source), " "
            )
    return rest


def statements(draft: Draft, texts: list[str]) -> list[str]:
    """What the response says besides quotes, sources and the model's own set phrases."""
    rest = own_words(draft)
    if not rest.strip():
        return []
    for match in _QUOTED.finditer(rest):
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
    return [
        statement
        for start, end in sentences(rest)
        if (statement := _LISTED.sub("", rest[start:end]))
        and not statement.startswith(_set_phrases())
        and not statement.endswith((":", "\uff1a"))  # it introduces what follows
    ]


@cache
def _set_phrases() -> tuple[str, ...]:
    """Beginnings of the sentences that are the model's own and claim nothing."""
    phrases = (text for each in lexicons() if each.phrases for _, text in each.phrases)
    return tuple(start for text in phrases if (start := text.partition("{")[0].strip()))


def _unsupported(draft: Draft, texts: list[str], query: str, language: str) -> list[str]:
    """Statements that no two sources support together."""
    own = [s for s in statements(draft, texts) if not is_verbatim(one_line(s), texts)]
    known = [frozenset(matching_terms(text, language)) for text in texts]
    asked = frozenset(matching_terms(f"{query} {of_the_answer()}", language))
    return [
        one_line(statement)
        for statement in own
        if not _is_supported(set(matching_terms(statement, language)), asked, known)
    ]


def _is_supported(terms: set[str], asked: frozenset[str], known: Sequence[frozenset[str]]) -> bool:
    """By two of the sources together."""
    added = terms - asked
    for number in (term for term in added if term[0].isdigit()):
        # A number on its own proves nothing: another term of the statement is in the same source.
        beside = terms - {number} or terms
        if not any(number in each and beside & each for each in known):
            return False
    left = set(added)
    for _ in range(2):
        best = max(
            known, key=lambda each: sum(has_match(t, each) for t in left), default=frozenset()
        )
        left -= {term for term in left if has_match(term, best)}
    return covers_most(len(added) - len(left), len(added))


def covers_most(found: int, of: int) -> bool:
    """Of a statement's terms: most, and of a few all but one, for there are synonyms."""
    return found >= (of - 1 if 1 < of <= _FEW else _SUPPORTED * of)


def has_match(term: str, known: frozenset[str]) -> bool:
    return term in known or best_kinship(term, known) > 0


def invented(draft: Draft, texts: list[str], query: str) -> list[str]:
    """Names and numbers of the response that are no words of a source or of the question."""
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
