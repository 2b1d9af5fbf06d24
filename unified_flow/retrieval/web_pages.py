"""What is made of fetched pages: documents of the index, and passages that answer a question."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing

from unified_flow.config.tables import DocumentSettings, ResearchSettings
from unified_flow.errors import PageUnusableError, UnifiedFlowError
from unified_flow.lib.printable import printable
from unified_flow.lib.sandbox import SandboxLimits
from unified_flow.lib.threads import wait_for
from unified_flow.retrieval import store
from unified_flow.retrieval.discovery import Discovery, FoundFile, Stamp
from unified_flow.retrieval.index_reader import IndexReader
from unified_flow.retrieval.index_writer import IndexWriter
from unified_flow.retrieval.web import Page
from unified_flow.turns.passage import Passage

Fetch = Callable[[str], Page]
"""Raises UnifiedFlowError for a page that cannot be had."""


def page_fetcher(settings: ResearchSettings) -> Fetch:
    """Fetches for the index, which is not asynchronous, whether or not a loop is running here.

    Loads what it needs with the first page.
    """

    def fetch_page(url: str) -> Page:
        import httpx

        from unified_flow.retrieval.web.fetch import fetch

        try:
            return wait_for(fetch(url, settings))
        except httpx.HTTPError as exc:
            raise PageUnusableError(str(exc), url=url, hint=getattr(exc, "hint", None)) from exc

    return fetch_page


def page_as_file(
    connection: sqlite3.Connection, url: str, fetch: Fetch | None, *, again: bool
) -> Discovery:
    """The page as a file of its own. What was fetched before stays if it cannot be had now."""
    stored = None if store.is_new(connection) else _stored(connection, url)
    if stored is not None and not again:
        return Discovery([stored])
    why = "web pages are not fetched here"
    if fetch is not None:
        try:
            return Discovery([_fetched(fetch(url), url)])
        except UnifiedFlowError as exc:
            why = f"not fetched: {exc}"
    return Discovery([stored] if stored else [], [(printable(url), why)])


def store_page(connection: sqlite3.Connection, page: FoundFile) -> None:
    """Inside a transaction. Stored as it came: an index that is built anew has no file to read."""
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
    return FoundFile(url, printable(url), Stamp(at_ns, at_ns, len(data)), data)


def best_passages(pages: Sequence[Page], question: str | None, limit: int) -> list[Passage]:
    """The best of all pages together, the best in front, by an index of them in memory.

    Without a question, or if nothing shares a term with it, the pages' beginnings in turn.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        store.create_tables(connection, "")
        found = [(page.final_url, Discovery([_fetched(page, page.final_url)])) for page in pages]
        writer = IndexWriter(connection, found, SandboxLimits(), DocumentSettings())
        with closing(writer):
            writer.update(None)
        reader = IndexReader(connection, state=())
        reader.learn(None)
        ranked = reader.found(question, limit).ordered if question else []
        if not ranked:
            beginnings = connection.execute(
                "SELECT id FROM chunk ORDER BY"
                " row_number() OVER (PARTITION BY file_id ORDER BY id), id LIMIT ?",
                (limit,),
            )
            ranked = [(0.0 if question else 1.0, id) for (id,) in beginnings]
        return [passage for passage, _ in reader.passages(ranked, limit)]
