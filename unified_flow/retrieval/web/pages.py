"""Web pages by the settings, and for the document index, which is not asynchronous."""

from __future__ import annotations

import asyncio

import httpx

from unified_flow.config.allowed_addresses import parse_allowed
from unified_flow.config.tables import ResearchSettings
from unified_flow.errors import PageUnusableError
from unified_flow.retrieval import web_pages
from unified_flow.retrieval.web import FetchPolicy


def policy_of(settings: ResearchSettings) -> FetchPolicy:
    return FetchPolicy(
        timeout_s=settings.timeout_s,
        max_bytes=settings.max_bytes,
        max_redirects=settings.max_redirects,
        ports=frozenset(settings.ports),
        allow_private=tuple(map(parse_allowed, settings.allow_private)),
    )


def page_fetcher(policy: FetchPolicy) -> web_pages.Fetch:
    """What `Documents` and `Index.update` take as `fetch`. Call it in a thread without a loop."""

    def fetch_page(url: str) -> web_pages.Page:
        from unified_flow.retrieval.web.fetch import fetch

        try:
            page = asyncio.run(fetch(url, policy))
        except httpx.HTTPError as exc:
            raise PageUnusableError(str(exc), url=url, hint=getattr(exc, "hint", None)) from exc
        return web_pages.Page(page.url, page.title, page.text, page.fetched_at)

    return fetch_page
