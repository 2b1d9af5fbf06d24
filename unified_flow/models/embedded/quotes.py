"""The passages that answer a question, verbatim, each with its source and decisive sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from unified_flow.models.embedded.excerpts import (
    Excerpt,
    Sentence,
    excerpts_of,
    language_of_passages,
)
from unified_flow.models.embedded.parsed_question import ParsedQuestion, parse_question
from unified_flow.models.embedded.sentence_ranking import (
    ENOUGH,
    RankedSentence,
    answerability,
    rank,
)
from unified_flow.models.embedded.surroundings import around
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import Citation

MOST = 3
LONGEST = 700  # characters of a quote
LONG = 1_200  # characters of the first passage
FURTHER = 600  # characters of a passage after the first
_LEAST = 0.003  # probability of a further quote
_SAYS_IT = 0.75  # agreement of a heading with a question that it answers
_FACTS = frozenset({"person", "time", "place", "number"})


@dataclass(frozen=True)
class QuoteSelection:
    """`confidence` is the probability that the passages answer the question at all; `sentence`
    is the one that the first quote was chosen for, without the sentence before it."""

    quotes: tuple[Citation, ...]
    confidence: float
    sentence: str = ""


def quotes_for(
    question: str,
    passages: Sequence[Passage],
    most: int = MOST,
    refused: frozenset[str] = frozenset(),
) -> QuoteSelection:
    """No quotes if the passages do not hold the answer. `refused` names quotes not to give."""
    return _quotes_for(question, tuple(passages), most, refused)


@lru_cache(maxsize=32)  # the phases of a turn ask the same
def _quotes_for(
    question: str, passages: tuple[Passage, ...], most: int, refused: frozenset[str]
) -> QuoteSelection:
    if not passages:
        return QuoteSelection((), 0.0)
    language = language_of_passages(passages)
    asked = parse_question(question, language)
    candidates = _by_passage(asked, excerpts_of(passages, language))
    if not candidates:
        return QuoteSelection((), 0.0)
    confidence = answerability(asked, candidates[0])
    if confidence < ENOUGH:
        return QuoteSelection((), confidence)
    quotes: list[Citation] = []
    sentence = ""
    for candidate in candidates:
        if len(quotes) == most or (quotes and candidate.probability < _LEAST):
            break
        quote = _citation(asked, candidate, is_first=not quotes)
        if quote.quote in refused or any(_overlap(quote, other) for other in quotes):
            continue
        sentence = sentence or candidate.sentence.text
        quotes.append(quote)
    return QuoteSelection(tuple(quotes), confidence, sentence)


def _by_passage(asked: ParsedQuestion, excerpts: Sequence[Excerpt]) -> list[RankedSentence]:
    """The best sentence of each passage, best first; before all others those of a section whose
    heading says what is asked, which begins with its answer."""
    ranked = rank(asked, excerpts)
    best: dict[str, RankedSentence] = {}
    for each in ranked:
        best.setdefault(each.excerpt.passage.chunk_id, each)
    agreement = {key: agrees(asked, each.excerpt) for key, each in best.items()}
    titled = sorted(
        (key for key in best if agreement[key] >= _SAYS_IT),
        key=lambda key: (-agreement[key], best[key].excerpt.passage.line),
    )
    rest = [key for key in best if key not in titled]
    return [best[key] for key in (*titled, *rest)]


def agrees(asked: ParsedQuestion, excerpt: Excerpt) -> float:
    """0..1: the harmonic mean of how much of the question the headings have, and how much of the
    last one the question has."""
    terms = frozenset(asked.terms)
    if not terms or not excerpt.leaf:
        return 0.0
    covered = len(terms & excerpt.heading) / len(terms)
    said = len(terms & excerpt.leaf) / len(excerpt.leaf)
    return 2 * covered * said / (covered + said) if covered and said else 0.0


def _citation(asked: ParsedQuestion, candidate: RankedSentence, *, is_first: bool) -> Citation:
    excerpt, sentence = candidate.excerpt, candidate.sentence
    text = excerpt.passage.text
    first = _with_antecedent(excerpt, sentence)
    if sentence.end - first.start > LONGEST:
        first = sentence
    opens = is_first and asked.kind in _FACTS
    extent = around(
        text, first.start, sentence.end, opens=opens, most=LONG if is_first else FURTHER
    )
    return Citation(
        source=excerpt.source(first),
        quote=text[first.start : sentence.end],
        passage=text[extent.start : extent.end],
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


def _overlap(one: Citation, other: Citation) -> bool:
    """Whether a reader would read something twice."""
    return one_line(one.quote) in one_line(other.passage) or one_line(other.quote) in one_line(
        one.passage
    )


def one_line(quote: str) -> str:
    return " ".join(quote.split())
