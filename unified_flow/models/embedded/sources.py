"""What a draft may be founded on: what tools found, earlier answers and memories, as quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from unified_flow.config.tool_names import SEARCHES
from unified_flow.lib.text import language_of
from unified_flow.models.embedded.excerpts import (
    excerpts_of,
    found_passages,
    language_of_passages,
    matching_terms,
)
from unified_flow.models.embedded.quotes import LONGEST, citation_of, one_line
from unified_flow.turns.results import Citation, ToolResult
from unified_flow.turns.sections import Sections


@dataclass(frozen=True)
class CitableSentence:
    """A sentence of a source that could be cited; `known` are its terms and its heading's."""

    cite: Callable[[], Citation]
    known: frozenset[str]


def texts_of(sections: Sections) -> list[str]:
    """Every text that the draft may rest on, each on one line."""
    texts = source_texts(sections.coordinator)
    texts += [text for _, text, _ in _remembered(sections)]
    return [one_line(text) for text in dict.fromkeys(texts)]


def language_of_sources(sections: Sections, texts: list[str]) -> str:
    passages = found_passages(sections.coordinator)
    return language_of_passages(passages) if passages else language_of(" ".join(texts[:3]))


def citable_sentences(sections: Sections, language: str) -> list[CitableSentence]:
    """Best passage first, each with its sentences in order."""
    found = [
        CitableSentence(
            partial(citation_of, excerpt.passage, each.start, min(each.end, each.start + LONGEST)),
            each.terms | excerpt.heading,
        )
        for excerpt in excerpts_of(found_passages(sections.coordinator), language)
        for each in excerpt.sentences
    ]
    said = [
        (claim.source, claim.claim, claim.confidence)
        for result in sections.coordinator
        if result.tool not in SEARCHES
        for claim in result.claims
    ]
    for source, text, score in [*said, *_remembered(sections)]:
        if quote := text.strip()[:LONGEST]:
            own = partial(Citation, source=source, quote=quote, score=score)
            found.append(CitableSentence(own, frozenset(matching_terms(quote, language))))
    return found


def _remembered(sections: Sections) -> list[tuple[str, str, float]]:
    """(source, text, score), by the names that the context gatherer gives them."""
    known = sections.context_gatherer
    if known is None:
        return []
    turns = [(f"turn:{turn.turn_id}", turn.answer, turn.score) for turn in known.prior_turns]
    return turns + [(f"memory:{each.id}", each.text, each.score) for each in known.memories]


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
