"""The passages of fetched pages that have most to do with a question."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from unified_flow.lib.text import language_of, terms
from unified_flow.retrieval.chunk import Chunk, chunks
from unified_flow.retrieval.formats import format_of
from unified_flow.retrieval.ranking import Corpus, score
from unified_flow.retrieval.web import Page
from unified_flow.turns.passage import Passage

_SAMPLE = 20_000  # characters that tell a page's language


def best_passages(pages: Sequence[Page], question: str | None, limit: int) -> list[Passage]:
    """The best of all pages together, best first, as the index ranks its own.

    Without a question, or if nothing shares a term with it, the pages' beginnings in turn.
    """
    cut = [(page, list(chunks(format_of(".md").sections(page.text)))) for page in pages]
    if question:
        found = [each for page, own in cut for each in _scored(page, own, question)]
        if found:
            return sorted(found, key=lambda passage: -passage.score)[:limit]
    value = 0.0 if question else 1.0
    beginnings = [
        _passage(page, own[place], value)
        for place in range(limit)
        for page, own in cut
        if place < len(own)
    ]
    return beginnings[:limit]


def _scored(page: Page, own: Sequence[Chunk], question: str) -> list[Passage]:
    language = language_of(page.text[:_SAMPLE])
    bodies = [terms(chunk.text, language) for chunk in own]
    headings = [terms(f"{page.title} {chunk.heading}", language) for chunk in own]
    corpus = Corpus(len(own), sum(map(len, bodies)) / max(len(own), 1))
    frequency = Counter(term for body in bodies for term in set(body))
    wanted = dict.fromkeys(terms(question, language))
    weights = {term: corpus.weight(frequency[term]) for term in wanted}
    ranked = [
        (score(weights, heading, body, corpus), chunk)
        for heading, body, chunk in zip(headings, bodies, own, strict=True)
    ]
    return [_passage(page, chunk, value) for value, chunk in ranked if value > 0]


def _passage(page: Page, chunk: Chunk, value: float) -> Passage:
    name = f"{page.final_url}\0{chunk.line}\0{chunk.text}".encode()
    return Passage(
        chunk_id=hashlib.blake2b(name, digest_size=8).hexdigest(),
        path=page.final_url,
        line=chunk.line,
        end_line=chunk.end_line,
        heading=chunk.heading or page.title,
        text=chunk.text,
        score=round(min(value, 1.0), 6),
    )
