"""What is made of fetched pages: documents of the index, and passages that answer a question."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence

from unified_flow.config.allowed_addresses import parse_allowed
from unified_flow.config.tables import ResearchSettings
from unified_flow.errors import PageUnusableError, UnifiedFlowError
from unified_flow.lib.text import language_of, terms
from unified_flow.lib.text.printable import printable
from unified_flow.lib.threads import wait_for
from unified_flow.retrieval import store
from unified_flow.retrieval.bm25 import Corpus, Fields, score
from unified_flow.retrieval.discovery import Discovery, FoundFile, Stamp
from unified_flow.retrieval.formats.chunk import Chunk, chunks
from unified_flow.retrieval.formats.document import sections_of
from unified_flow.retrieval.web import FetchPolicy, Page
from unified_flow.turns.passage import Passage

_MARKDOWN = ".md"
_SAMPLE = 20_000  # characters that tell a page's language

Fetch = Callable[[str], Page]
"""Raises UnifiedFlowError for a page that cannot be had."""


def fetch_policy_of(settings: ResearchSettings) -> FetchPolicy:
    return FetchPolicy(
        timeout_s=settings.timeout_s,
        max_bytes=settings.max_bytes,
        max_redirects=settings.max_redirects,
        ports=frozenset(settings.ports),
        allow_private=tuple(map(parse_allowed, settings.allow_private)),
    )


def page_fetcher(policy: FetchPolicy) -> Fetch:
    """Fetches for the index, which is not asynchronous, whether or not a loop is running here.

    Loads what it needs with the first page.
    """

    def fetch_page(url: str) -> Page:
        import httpx

        from unified_flow.retrieval.web.fetch import fetch

        try:
            return wait_for(fetch(url, policy))
        except httpx.HTTPError as exc:
            raise PageUnusableError(str(exc), url=url, hint=getattr(exc, "hint", None)) from exc

    return fetch_page


def page_as_file(
    connection: sqlite3.Connection, url: str, fetch: Fetch | None, *, again: bool
) -> Discovery:
    """The page as a file of its own. What was fetched before stays if it cannot be had now."""
    found = Discovery()
    stored = None if store.is_new(connection) else _stored(connection, url)
    if stored is not None and not again:
        found.files.append(stored)
        return found
    try:
        if fetch is None:
            found.skipped.append((printable(url), "web pages are not fetched here"))
        else:
            found.files.append(_fetched(fetch(url), url))
    except UnifiedFlowError as exc:
        found.skipped.append((printable(url), f"not fetched: {exc}"))
    if stored is not None and not found.files:
        found.files.append(stored)
    return found


def store_page(connection: sqlite3.Connection, page: FoundFile) -> None:
    """Inside `writing`. Stored as it came: an index that is built anew has no file to read."""
    connection.execute(
        "INSERT OR REPLACE INTO web_page VALUES (?, ?, ?)",
        (os.fsencode(page.path), page.stamp.mtime_ns, page.data),
    )


def _stored(connection: sqlite3.Connection, url: str) -> FoundFile | None:
    row = connection.execute(
        "SELECT fetched_ns, data FROM web_page WHERE url = ?", (os.fsencode(url),)
    ).fetchone()
    return _as_file(url, *row) if row else None


def _fetched(page: Page, url: str) -> FoundFile:
    text = page.text
    if page.title and not text.lstrip().startswith("#"):
        text = f"# {page.title}\n\n{text}"
    at_ns = int(page.fetched_at.timestamp() * 1_000_000) * 1_000
    return _as_file(url, at_ns, text.encode("utf-8", "replace"))


def _as_file(url: str, at_ns: int, data: bytes) -> FoundFile:
    return FoundFile(url, printable(url), Stamp(at_ns, at_ns, len(data)), data, _MARKDOWN)


def best_passages(pages: Sequence[Page], question: str | None, limit: int) -> list[Passage]:
    """The best of all pages together, best first, as the index ranks its own.

    Without a question, or if nothing shares a term with it, the pages' beginnings in turn.
    """
    cut = [(page, list(chunks(sections_of(_MARKDOWN, page.text)))) for page in pages]
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
    fields = [_fields(page, chunk, body, language) for chunk, body in zip(own, bodies, strict=True)]
    corpus = Corpus(len(own), sum(map(len, bodies)) / max(len(own), 1))
    frequency = Counter(term for body in bodies for term in set(body))
    wanted = dict.fromkeys(terms(question, language))

    def weight_of(term: str) -> float:
        return corpus.weight(frequency[term])

    weights = {term: weight_of(term) for term in wanted}
    ranked = [
        (score(weights, each, corpus, weight_of).value, chunk)
        for each, chunk in zip(fields, own, strict=True)
    ]
    return [_passage(page, chunk, value) for value, chunk in ranked if value > 0]


def _fields(page: Page, chunk: Chunk, body: list[str], language: str) -> Fields:
    above, _, title = chunk.heading.rpartition(" > ")
    heading, trail = terms(title, language), terms(f"{page.title} {above}", language)
    return Fields(" ".join(heading), " ".join(trail), " ".join(body))


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
