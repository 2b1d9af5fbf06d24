"""What a draft may be founded on: what tools found, earlier answers and memories, as quotes."""

from __future__ import annotations

from dataclasses import dataclass

from unified_flow.lib.text import language_of
from unified_flow.models.embedded.excerpts import (
    SEARCHES,
    excerpts_of,
    found_passages,
    language_of_passages,
    matching_terms,
)
from unified_flow.models.embedded.quotes import LONGEST, one_line
from unified_flow.models.embedded.verification import source_texts
from unified_flow.turns.sections import Sections


@dataclass(frozen=True)
class CitableSentence:
    """A sentence of a source that could be cited; `known` are its terms and its heading's."""

    source: str
    quote: str
    known: frozenset[str]


def texts_of(sections: Sections) -> list[str]:
    """Every text that the draft may rest on, each on one line."""
    texts = source_texts(sections.coordinator)
    texts += [text for _, text in _remembered(sections)]
    return [one_line(text) for text in dict.fromkeys(texts)]


def language_of_sources(sections: Sections, texts: list[str]) -> str:
    passages = found_passages(sections.coordinator)
    return language_of_passages(passages) if passages else language_of(" ".join(texts[:3]))


def citable_sentences(sections: Sections, language: str) -> list[CitableSentence]:
    """Best passage first, each with its sentences in order."""
    found = [
        CitableSentence(excerpt.source(each), each.text[:LONGEST], each.terms | excerpt.heading)
        for excerpt in excerpts_of(found_passages(sections.coordinator), language)
        for each in excerpt.sentences
    ]
    said = [
        (claim.source, claim.claim)
        for result in sections.coordinator
        if result.tool not in SEARCHES
        for claim in result.claims
    ]
    for source, text in [*said, *_remembered(sections)]:
        if quote := text.strip()[:LONGEST]:
            found.append(CitableSentence(source, quote, frozenset(matching_terms(quote, language))))
    return found


def _remembered(sections: Sections) -> list[tuple[str, str]]:
    """By the names that the context gatherer gives them."""
    known = sections.context_gatherer
    if known is None:
        return []
    turns = [(f"turn:{turn.turn_id}", turn.answer) for turn in known.prior_turns]
    return turns + [(f"memory:{memory.id}", memory.text) for memory in known.memories]
