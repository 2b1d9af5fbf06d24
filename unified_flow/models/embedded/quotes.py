"""The passages that answer a question, verbatim, each with its source and decisive sentence.

A section that is short enough is quoted whole. Of another, a quote is the contiguous text around
that sentence that a reader needs to use it: a list with its lead-in and its other items, code with
the text around it, and a paragraph with what follows as long as that is short. Nothing is cut
inside a sentence or inside code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce

from unified_flow.lib.blocks import Block, blocks, fence_after
from unified_flow.lib.text import sentences
from unified_flow.models.embedded.excerpts import (
    Excerpt,
    Sentence,
    excerpts_of,
    language_of_passages,
)
from unified_flow.models.embedded.sentence_ranking import (
    ENOUGH,
    FACTS,
    RankedSentence,
    answerability,
    parse_question,
    rank,
)
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import Citation

MOST = 3
LONGEST = 700  # characters of a quote
INTRODUCES = (":", "\uff1a")  # what follows, also in Chinese
LONG = 1_600  # characters of the first passage
ALONE = 2_400  # of one that stays the only one: there is room for its example
FURTHER = 1_000  # characters of a passage after the first
_APART = 3  # lines from the end of a part of a section to the next one, at most
_NEAR = 0.75  # of the first passage's score, for a further one
_ADDS = 0.6  # for one that adds a word of the question
# What retrieval and the heading say, against a probability of the sentence: chosen on questions
# that are headings of documentation, and on the same with the headings taken out.
_FOUND = 6.0
_TITLED = 10.0
_AGREES = 0.6  # from where on a heading counts


@lru_cache(maxsize=32)  # the same question comes again once a small model has answered
def quotes_for(
    question: str,
    passages: tuple[Passage, ...],
    most: int = MOST,
    refused: frozenset[str] = frozenset(),
) -> tuple[Citation, ...]:
    """Empty if the passages do not hold the answer. `refused` names quotes not to give."""
    candidates = _by_passage(_ranked(question, passages))
    if not candidates or answerability(candidates[0]) < ENOUGH:
        return ()
    quotes: list[Citation] = []
    shown: list[RankedSentence] = []
    for candidate in candidates:
        if len(quotes) == most:
            break
        if not _is_worth_showing(candidate, shown):
            continue
        quote = _citation(candidate, FURTHER if quotes else LONG)
        if quote.quote in refused or any(_overlap(quote, other) for other in quotes):
            continue
        quotes.append(quote)
        shown.append(candidate)
    alone = len(quotes) == 1 and candidates[0].context.question.kind not in FACTS
    quoted = {each.excerpt.passage.chunk_id for each in shown}
    others = [each for each in passages if each.chunk_id not in quoted]
    return tuple(
        _citation(each, FURTHER if number else ALONE if alone else LONG, others)
        for number, each in enumerate(shown)
    )


def probability(question: str, passages: tuple[Passage, ...]) -> float:
    """0..1, that the passages hold an answer."""
    candidates = _by_passage(_ranked(question, passages))
    return answerability(candidates[0]) if candidates else 0.0


def likeliest(question: str, passages: tuple[Passage, ...]) -> list[str]:
    """The sentences that most probably hold the answer, in whatever passage they stand."""
    return [each.sentence.text for each in _ranked(question, passages)[:MOST]]


@lru_cache(maxsize=32)  # for the quotes, and for what is marked for a small model
def _ranked(question: str, passages: tuple[Passage, ...]) -> Sequence[RankedSentence]:
    language = language_of_passages(passages)
    return rank(parse_question(question, language), excerpts_of(passages, language))


def _by_passage(ranked: Sequence[RankedSentence]) -> list[RankedSentence]:
    """The best sentence of each passage; first of all that of a section whose heading says what is
    asked."""
    best: dict[str, RankedSentence] = {}
    opening: dict[str, RankedSentence] = {}
    for each in ranked:
        key = each.excerpt.passage.chunk_id
        best.setdefault(key, each)
        opening[key] = min(opening.get(key, each), each, key=lambda one: one.sentence.start)
    begins = _introduction(ranked)
    ordered = sorted(best, key=lambda key: -_worth(best[key], begins=begins))
    return [_decisive(best[key], opening[key]) for key in ordered]


def _decisive(best: RankedSentence, opening: RankedSentence) -> RankedSentence:
    """Under a heading that says what is asked, the answer begins with the first sentence, unless
    another takes up a word of the question."""
    titled = _agreement(best) > _AGREES
    return opening if titled and best.sentence.terms.isdisjoint(best.context.asked) else best


def _introduction(ranked: Sequence[RankedSentence]) -> Excerpt | None:
    """The first part of what stands under a heading that is the term to be defined."""
    under = [each.excerpt for each in ranked if each.context.question.core in each.excerpt.headings]
    if not under or ranked[0].context.question.kind != "definition":
        return None
    file = max(under, key=lambda each: each.passage.score).passage.path
    return min(under, key=lambda each: (each.passage.path != file, each.passage.line))


def _is_worth_showing(candidate: RankedSentence, shown: Sequence[RankedSentence]) -> bool:
    """Whether it comes near the first, or holds what the first lacks of the question."""
    if not shown:
        return True
    first = shown[0].excerpt.passage.score
    core = candidate.context.question.core
    adds = core & candidate.excerpt.terms - shown[0].excerpt.terms
    return candidate.excerpt.passage.score >= (_ADDS if adds else _NEAR) * first


def _worth(each: RankedSentence, *, begins: Excerpt | None) -> float:
    """Logarithmic, as the evidence is independent."""
    score, probability = each.excerpt.passage.score, each.probability
    agreement = (_agreement(each) - _AGREES) / (1 - _AGREES)
    titled = max(2.0 * (each.excerpt is begins), agreement, 0.0)
    return math.log(max(probability, 1e-9)) + _FOUND * math.log(max(score, 1e-3)) + _TITLED * titled


def _agreement(each: RankedSentence) -> float:
    """0..1: the harmonic mean of how much of the question the headings have, and how much of the
    last one the question has."""
    terms, leaf = each.context.asked, each.excerpt.headings[-1]
    if not terms or not leaf:
        return 0.0
    covered = len(terms & each.excerpt.heading) / len(terms)
    said = len(terms & leaf) / len(leaf)
    return 2 * covered * said / (covered + said) if covered and said else 0.0


def _citation(candidate: RankedSentence, most: int, others: Sequence[Passage] = ()) -> Citation:
    """`most` characters of its passage, and of the next part of its section, if the others have
    it."""
    excerpt, sentence = candidate.excerpt, candidate.sentence
    first = _with_antecedent(excerpt, sentence)
    if sentence.end - first.start > LONGEST:
        first = sentence
    opens = most > FURTHER and candidate.context.question.kind in FACTS
    whole = _with_next_part(excerpt.passage, others)
    return citation_of(whole, first.start, sentence.end, opens=opens, most=most)


def _with_next_part(passage: Passage, others: Sequence[Passage]) -> Passage:
    """The passage, and the text of the part that follows it in the same section, if the others
    have it. Code that is cut between the two stays cut: whole it would be too long to quote."""
    section = (passage.path, passage.heading, passage.page)
    for each in others if not _ends_in_code(passage.text) else ():
        lines = each.line - passage.end_line
        is_next = each.continues and 0 < lines <= _APART
        if is_next and (each.path, each.heading, each.page) == section:
            text = passage.text + "\n" * lines + each.text
            return passage.model_copy(update={"text": text, "end_line": each.end_line})
    return passage


def _ends_in_code(text: str) -> bool:
    return bool(reduce(lambda fence, line: fence_after(line, fence), text.split("\n"), ""))


def citation_of(
    passage: Passage, start: int, end: int, *, opens: bool = False, most: int = FURTHER
) -> Citation:
    """A citation of the passage from `start` to `end`, with what stands `around` it."""
    return Citation(
        source=passage.source(start),
        quote=passage.text[start:end],
        passage=around(passage.text, start, end, opens=opens, most=most),
        heading=passage.heading,
        score=passage.score,
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


def around(text: str, start: int, end: int, *, opens: bool = False, most: int) -> str:
    """What to quote of `text` for the sentence at `start`..`end`: all of it if it has no more than
    `most` characters; else up to `most` of what belongs together, and up to half of them of what
    only stands beside it. If the sentence `opens` the answer, what stands before it is left out."""
    parts = [
        Block(start, each.end, each.kind) if opens and each.start < start < each.end else each
        for each in _parts(text, most)
        if each.end > start or not opens
    ]
    first = next(n for n, each in enumerate(parts) if each.end > start)
    last = next((n for n, each in enumerate(parts) if each.end >= end), len(parts) - 1)
    if not opens and parts[-1].end - parts[0].start <= most:
        first, last = 0, len(parts) - 1
    while (step := _step(text, parts, first, last, most)) is not None:
        first, last = step
    while first and parts[first].kind == "code" and parts[first].end <= start:
        first += 1  # what introduces it did not fit
    chosen = parts[first : last + 1]
    chosen[-1:] = _without_introduction(text, chosen[-1], end)
    return "".join(_joined(text, chosen))


@lru_cache(maxsize=512)
def _blocks(text: str) -> tuple[Block, ...]:
    return tuple(blocks(text))


def _parts(text: str, most: int) -> Iterator[Block]:
    """The blocks; of one that is too long, its sentences."""
    for block in _blocks(text):
        end = block.start + len(text[block.start : block.end].rstrip())
        if block.kind == "code" or end - block.start <= most:
            yield Block(block.start, end, block.kind)
        else:
            yield from _sentences(text, block)


def _sentences(text: str, block: Block) -> list[Block]:
    spans = sentences(text[block.start : block.end])
    return [Block(block.start + begin, block.start + stop, block.kind) for begin, stop in spans]


def _step(
    text: str, parts: Sequence[Block], first: int, last: int, most: int
) -> tuple[int, int] | None:
    """The span with one part more, before or after it; None once it is enough."""
    after = last + 1 < len(parts)
    before = first > 0
    for wanted, step, limit in (
        (after and _belong(text, parts[last], parts[last + 1]), (first, last + 1), most),
        (before and _belong(text, parts[first - 1], parts[first]), (first - 1, last), most),
        (after, (first, last + 1), most // 2),
        (before, (first - 1, last), most // 2),
    ):
        if wanted and parts[step[1]].end - parts[step[0]].start <= limit:
            return step
    return None


def _belong(text: str, one: Block, other: Block) -> bool:
    """Whether the second part is hard to read without the first, or the first without it."""
    if _is_introduction(text, one) or "code" in (one.kind, other.kind):
        return True
    return other.kind != "text" and one.kind == other.kind


def _is_introduction(text: str, part: Block) -> bool:
    return text[part.start : part.end].endswith(INTRODUCES)


def _without_introduction(text: str, part: Block, end: int) -> list[Block]:
    """The part without a sentence at its end that introduces what did not fit."""
    if part.kind == "code" or not _is_introduction(text, part):
        return [part]
    kept = _sentences(text, part)[:-1]
    if kept and kept[-1].end >= end:
        return [Block(part.start, kept[-1].end, part.kind)]
    return [part] if part.start < end else []


def _joined(text: str, parts: Sequence[Block]) -> Iterator[str]:
    """The parts with at most one blank line between them: of many, most held markup. The rows of
    a table have none, because only its rules stood there."""
    for number, part in enumerate(parts):
        if number:
            before = parts[number - 1]
            gap = text[before.end : part.start]
            lines = gap.split("\n")
            apart = "\n" if _is_row(text, before) and _is_row(text, part) else "\n\n"
            yield gap if len(lines) < 3 else f"{apart}{lines[-1]}"
        yield text[part.start : part.end]


def _is_row(text: str, part: Block) -> bool:
    return text[part.start : part.end].lstrip().startswith("|")
