"""Web pages as roots: fetched when they are not in the index yet, or when that is asked for."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from unified_flow.errors import UnifiedFlowError
from unified_flow.lib.text.printable import printable
from unified_flow.retrieval import store
from unified_flow.retrieval.discover import Found, FoundFile, Stamp


@dataclass(frozen=True)
class Page:
    """What an address gave: text with Markdown's headings, in UTF-8."""

    url: str
    title: str
    text: str
    fetched_at: datetime


Fetch = Callable[[str], Page]
"""Raises UnifiedFlowError for a page that cannot be had."""


def page_as_file(
    connection: sqlite3.Connection, url: str, fetch: Fetch | None, *, again: bool
) -> Found:
    """The page as a file of its own. What was fetched before stays if it cannot be had now."""
    found = Found()
    shown = printable(url)
    known = None if store.is_new(connection) else _kept(connection, url)
    if known is not None and not again:
        found.files.append(known)
        return found
    try:
        if fetch is None:
            found.skipped.append((shown, "web pages are not fetched here"))
        else:
            found.files.append(_fetched(fetch(url), url))
    except UnifiedFlowError as exc:
        found.skipped.append((shown, f"not fetched: {exc}"))
    if known is not None and not found.files:
        found.files.append(known)
    return found


def keep_page(connection: sqlite3.Connection, page: FoundFile) -> None:
    """Inside `writing`. Kept as it came: an index that is built anew has no file to read."""
    connection.execute(
        "INSERT OR REPLACE INTO web_page VALUES (?, ?, ?)",
        (os.fsencode(page.path), page.stamp.mtime_ns, page.data),
    )


def _kept(connection: sqlite3.Connection, url: str) -> FoundFile | None:
    row = connection.execute(
        "SELECT fetched_ns, data FROM web_page WHERE url = ?", (os.fsencode(url),)
    ).fetchone()
    return _as_file(url, *row) if row else None


def _fetched(page: Page, url: str) -> FoundFile:
    text = page.text
    if page.title and not text.lstrip().startswith("#"):
        text = f"# {page.title}\n\n{text}"
    at = int(page.fetched_at.timestamp() * 1_000_000) * 1_000
    return _as_file(url, at, text.encode("utf-8", "replace"))


def _as_file(url: str, at: int, data: bytes) -> FoundFile:
    return FoundFile(url, printable(url), Stamp(at, at, len(data)), data, ".md")
