"""Whether what a draft says stands in the sources: statements, quotes, names and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unified_flow.models.embedded.matching import closest, matching_terms
from unified_flow.models.embedded.phrases import ALL
from unified_flow.models.embedded.quotes import shown
from unified_flow.results import Draft, ToolResult
from unified_flow.retrieval import path_of
from unified_flow.text import language_of, sentences

KEEP_TO_SOURCES = "keep to what the sources say and leave out what the issues name"
SUPPORTED = 0.6  # share of a statement's terms that its sources have
_QUOTED = re.compile(r"“([^“”]+)”")
# The marks of a list; "308" and "3.5 million" are none.
_LISTED = re.compile(r"\A(?:[-*. ]+|\d{1,3}[.)](?:\s+|\Z))+")
_SOURCE = re.compile(r"\(?[^\s()]+(?::p?|#L)\d+\)?:?")
_CHECKED = re.compile(r"\b(?:[A-ZÅÄÖ][\w-]*|\d[\d.,]*\w*)\b")


@dataclass(frozen=True)
class Faults:
    """Quotes, statements, and names and numbers that the sources do not have."""

    misquoted: list[str]
    unsupported: list[str]
    invented: list[str]

    @property
    def issues(self) -> list[str]:
        found = [f"not in the sources: {shown(quote)}" for quote in self.misquoted]
        found += [f"not supported by the sources: {statement}" for statement in self.unsupported]
        return found + [f"stands in no source: {name}" for name in self.invented]

    @property
    def hints(self) -> list[str]:
        """What to do about them, in words that a small model can follow."""
        return [KEEP_TO_SOURCES, *(f"write it without “{name}”" for name in self.invented)]


def faults(draft: Draft, texts: list[str], query: str) -> Faults:
    """`texts` are the sources, each on one line (`quotes.shown`)."""
    return Faults(
        [c.quote for c in draft.citations if not stands(shown(c.quote), texts)],
        unsupported(draft, texts, query),
        invented(draft, texts, query),
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


def stands(quote: str, texts: Iterable[str]) -> bool:
    return bool(quote) and any(quote in text for text in texts)


def statements(draft: Draft, texts: list[str]) -> list[str]:
    """What the response says besides quotes, sources and the model's own set phrases."""
    rest = draft.response
    for match in _QUOTED.finditer(draft.response):
        if stands(shown(match.group(1)), texts):
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
        if (statement := _LISTED.sub("", rest[start:end])) and not statement.startswith(own)
    ]


def unsupported(draft: Draft, texts: list[str], query: str) -> list[str]:
    language = language_of(query)
    own = [s for s in statements(draft, texts) if not stands(shown(s), texts)]
    if not own:
        return []
    known = [frozenset(matching_terms(text, language)) for text in texts]
    asked = frozenset(matching_terms(query, language))
    found = []
    for statement in own:
        said = set(matching_terms(statement, language)) - asked
        best = max((sum(known_in(t, each) for t in said) for each in known), default=0)
        if best < SUPPORTED * len(said):
            found.append(shown(statement))
    return found


def known_in(term: str, known: frozenset[str]) -> bool:
    return term in known or closest(term, known) > 0


def invented(draft: Draft, texts: list[str], query: str) -> list[str]:
    """Names and numbers of the response that no source and no question has."""
    everything = " ".join([*texts, query]).casefold()
    found = []
    for statement in statements(draft, texts):
        for place, match in enumerate(_CHECKED.finditer(statement)):
            word = match.group().strip(".,")
            opening = place == 0 and statement.startswith(word) and not word[0].isdigit()
            if word and not opening and word.casefold() not in everything:
                found.append(word)
    return list(dict.fromkeys(found))
