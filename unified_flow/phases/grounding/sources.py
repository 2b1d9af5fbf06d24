"""What a draft may be founded on: what tools found, earlier answers and memories, as quotes."""

from __future__ import annotations

from dataclasses import dataclass

from unified_flow.lib.text import language_of
from unified_flow.models.embedded.matching import matching_terms
from unified_flow.models.embedded.passages import SEARCHES, passages_of, read_passages
from unified_flow.models.embedded.quotes import LONGEST, shown
from unified_flow.models.embedded.statements import source_texts
from unified_flow.turns.sections import Sections


@dataclass(frozen=True)
class Candidate:
    """A sentence of a source that could be cited; `known` are its terms and its heading's."""

    source: str
    quote: str
    known: frozenset[str]


def texts_of(sections: Sections) -> list[str]:
    """Every text that the draft may rest on, each on one line."""
    texts = source_texts(sections.coordinator)
    texts += [text for _, text in _remembered(sections)]
    return [shown(text) for text in dict.fromkeys(texts)]


def language_of_sources(sections: Sections, texts: list[str]) -> str:
    passages = passages_of(sections.coordinator)
    return language_of(" ".join([p.text[:1_000] for p in passages[:3]] or texts[:3]))


def candidates(sections: Sections, language: str) -> list[Candidate]:
    """Best passage first, each with its sentences in order."""
    found = [
        Candidate(read.source(each), each.text[:LONGEST], each.known | read.heading)
        for read in read_passages(passages_of(sections.coordinator), language)
        for each in read.sentences
    ]
    said = [
        (claim.source, claim.claim)
        for result in sections.coordinator
        if result.tool not in SEARCHES
        for claim in result.claims
    ]
    for source, text in [*said, *_remembered(sections)]:
        if quote := text.strip()[:LONGEST]:
            found.append(Candidate(source, quote, frozenset(matching_terms(quote, language))))
    return found


def _remembered(sections: Sections) -> list[tuple[str, str]]:
    """By the names that the context gatherer gives them."""
    known = sections.context_gatherer
    if known is None:
        return []
    turns = [(f"turn:{turn.turn_id}", turn.answer) for turn in known.prior_turns]
    return turns + [(f"memory:{memory.id}", memory.text) for memory in known.memories]
