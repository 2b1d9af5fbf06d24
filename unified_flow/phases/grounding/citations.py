"""Citations by overlap: attached where a draft has none, removed where they support nothing.

Language models leave citations out, or cite what does not say it. A sentence of the draft is
supported by quotes that have enough of its terms, and every number of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from unified_flow.models.embedded.excerpts import matching_terms
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.quotes import one_line
from unified_flow.models.embedded.verification import (
    covers_most,
    has_match,
    is_verbatim,
    of_the_answer,
    own_words,
    statements,
)
from unified_flow.phases.grounding.sources import (
    CitableSentence,
    citable_sentences,
    language_of_sources,
    texts_of,
)
from unified_flow.turns.results import Citation, Draft
from unified_flow.turns.sections import Sections

REMOVED = "citations_supported"  # in the draft's checklist: false once one was removed
_SHARED = 0.3  # of a sentence's terms, for a quote that supports it with others
_TOGETHER = 4  # quotes for one sentence at most: a summary draws on several


def cited(draft: Draft, query: str, sections: Sections) -> Draft:
    """The draft with citations that support it, and with no other.

    Citations that already do are left as they are; a sentence without one gets one, if a source
    has it. An abstention and small talk have nothing to cite.
    """
    texts = texts_of(sections)
    if draft.abstained or not texts or talk_of(query):
        return draft
    reader = _Reader(query, language_of_sources(sections, texts))
    parts = _parts(draft, texts)
    kept = [
        c for c, good in zip(draft.citations, _judged(draft, texts, reader), strict=True) if good
    ]
    sources = citable_sentences(sections, reader.language)
    added: list[Citation] = []
    for part in parts:
        said = reader.said(part)
        own = [reader.known(c.quote) for c in [*kept, *added]]
        if not reader.supports(said, own):
            added += [c for c in _found(said, sources, reader) if c not in added]
    checklist = draft.checklist
    if len(kept) < len(draft.citations):
        checklist = {**checklist, REMOVED: False}
    if not added and checklist is draft.checklist:
        return draft
    return draft.model_copy(update={"citations": [*kept, *added], "checklist": checklist})


def supporting(draft: Draft, query: str, sections: Sections) -> list[bool]:
    """For each citation of the draft, whether it stands in the sources and supports its sentence:
    the one with which it has most in common."""
    texts = texts_of(sections)
    return _judged(draft, texts, _Reader(query, language_of_sources(sections, texts)))


class _Reader:
    """Terms of statements and quotes, and what one owes the other."""

    def __init__(self, query: str, language: str) -> None:
        self.language = language
        self._asked = frozenset(matching_terms(query, language))
        self._not_said = self._asked | frozenset(matching_terms(of_the_answer(), language))

    def known(self, quote: str) -> frozenset[str]:
        return frozenset(matching_terms(quote, self.language))

    def said(self, statement: str) -> frozenset[str]:
        """What it adds to the question; all of it, if it only repeats the question's words."""
        terms = self.known(statement)
        return terms - self._not_said or terms

    def share(self, said: frozenset[str], known: frozenset[str]) -> float:
        return sum(has_match(term, known) for term in said) / len(said) if said else 1.0

    def of_question(self, known: frozenset[str]) -> float:
        return self.share(self._asked, known)

    def supports(self, said: frozenset[str], quotes: Sequence[frozenset[str]]) -> bool:
        """One of them has enough of it, or several have that between them."""
        if not quotes:
            return False
        numbers = {term for term in said if term[0].isdigit()}
        several = [known for known in quotes if self.share(said, known) >= _SHARED]
        for known in [*quotes, frozenset[str]().union(*several)]:
            have = sum(has_match(term, known) for term in said)
            if numbers <= known and covers_most(have, len(said)):
                return True
        return False


def _parts(draft: Draft, texts: list[str]) -> list[str]:
    """What the response says in its own words, without regard to what it cites."""
    bare = draft.model_copy(update={"response": own_words(draft), "citations": []})
    return [part for part in statements(bare, texts) if any(c.isalnum() for c in part)]


def _judged(draft: Draft, texts: list[str], reader: _Reader) -> list[bool]:
    parts = [reader.said(part) for part in _parts(draft, texts)]
    response = one_line(draft.response)
    known = [reader.known(c.quote) for c in draft.citations]
    best = [_closest(own, parts, reader) for own in known]
    judged = []
    for number, citation in enumerate(draft.citations):
        quote, place = one_line(citation.quote), best[number]
        if not is_verbatim(quote, texts):
            judged.append(False)
        elif quote in response or place is None:
            judged.append(True)
        else:
            beside = [own for own, other in zip(known, best, strict=True) if other == place]
            has_part = reader.share(parts[place], known[number]) >= _SHARED
            judged.append(has_part and reader.supports(parts[place], beside))
    return judged


def _closest(known: frozenset[str], parts: Sequence[frozenset[str]], reader: _Reader) -> int | None:
    """The place of the sentence that has most in common with a quote."""
    shares = [reader.share(said, known) for said in parts]
    return shares.index(max(shares)) if shares else None


def _found(
    said: frozenset[str], sources: Sequence[CitableSentence], reader: _Reader
) -> list[Citation]:
    """As few quotes as support it, [] if no two do. Ties go to what has more of the question,
    then to the better passage."""
    chosen: list[CitableSentence] = []
    known: frozenset[str] = frozenset()
    while len(chosen) < _TOGETHER:
        left = [
            each
            for each in sources
            if each not in chosen and reader.share(said, each.known) >= _SHARED
        ]
        if not left:
            return []
        chosen.append(max(left, key=partial(_worth, said, known, reader)))
        known |= chosen[-1].known
        if reader.supports(said, [known]):
            return [each.citation for each in chosen]
    return []


def _worth(
    said: frozenset[str], known: frozenset[str], reader: _Reader, each: CitableSentence
) -> tuple[float, float]:
    return (
        round(reader.share(said, known | each.known), 3),
        round(reader.of_question(each.known), 3),
    )
