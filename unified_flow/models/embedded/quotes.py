"""The likeliest sentences as quotes: verbatim, with their sources, understandable alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unified_flow.models.embedded.excerpts import (
    Excerpt,
    Sentence,
    excerpts_of,
    language_of_passages,
)
from unified_flow.models.embedded.parsed_question import parse_question
from unified_flow.models.embedded.sentence_ranking import (
    ENOUGH,
    RankedSentence,
    answerability,
    rank,
)
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import Citation

MOST = 3
LONGEST = 700  # characters of a quote
_LEAST = 0.003  # probability of a further quote


@dataclass(frozen=True)
class QuoteSelection:
    """`confidence` is the probability that the passages answer the question at all; `sentence`
    is the one that the first quote was chosen for, without the sentence before it."""

    quotes: list[Citation]
    confidence: float
    sentence: str = ""


def quotes_for(
    question: str,
    passages: Sequence[Passage],
    most: int = MOST,
    refused: frozenset[str] = frozenset(),
) -> QuoteSelection:
    """No quotes if the passages do not hold the answer. `refused` names quotes not to give."""
    if not passages:
        return QuoteSelection([], 0.0)
    language = language_of_passages(passages)
    excerpts = excerpts_of(passages, language)
    asked = parse_question(question, language)
    candidates = rank(asked, excerpts)
    if not candidates:
        return QuoteSelection([], 0.0)
    confidence = answerability(asked, candidates[0])
    if confidence < ENOUGH:
        return QuoteSelection([], confidence)
    quotes: list[Citation] = []
    sentence = ""
    for candidate in candidates:
        if len(quotes) == most or (quotes and candidate.probability < _LEAST):
            break
        if any(candidate.sentence.text in quote.quote for quote in quotes):
            continue
        quote = _citation(candidate, quotes)
        if quote.quote in refused:
            continue
        sentence = sentence or candidate.sentence.text
        quotes.append(quote)
    return QuoteSelection(quotes, confidence, sentence)


def _citation(candidate: RankedSentence, earlier: Sequence[Citation]) -> Citation:
    excerpt, sentence = candidate.excerpt, candidate.sentence
    first = _with_antecedent(excerpt, sentence)
    if any(first.text in citation.quote for citation in earlier):
        first = sentence
    quote = excerpt.passage.text[first.start : sentence.end]
    if len(quote) > LONGEST:
        first, cut = sentence, sentence.text[:LONGEST]
        quote = cut.rpartition(" ")[0] or cut
    return Citation(
        source=excerpt.source(first),
        quote=quote,
        passage=quote,
        heading=excerpt.passage.heading,
        score=excerpt.passage.score,
    )


def _with_antecedent(excerpt: Excerpt, sentence: Sentence) -> Sentence:
    """Where the quote begins: one sentence earlier for one that opens with "He" or "This"."""
    if not sentence.continues:
        return sentence
    before = excerpt.sentences[sentence.number - 1]
    between = excerpt.passage.text[before.end : sentence.start]
    return before if not between.strip() and "\n\n" not in between else sentence


def one_line(quote: str) -> str:
    return " ".join(quote.split())
