"""`internet.research`: the web pages that a call names, and their passages about a question."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from unified_flow.config import tool_names
from unified_flow.config.tables import ResearchSettings
from unified_flow.lib.text.urls import without_fragment
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.web import Page
from unified_flow.retrieval.web_pages import best_passages
from unified_flow.tools import Access, Arguments, Tool, ToolOutput, claim, current_caller

MAX_URLS = 5
PASSAGES = 8

Url = Annotated[str, Field(min_length=1, max_length=2048)]


class ResearchArguments(Arguments):
    urls: list[Url] = Field(
        min_length=1, max_length=MAX_URLS, description="addresses of web pages, http or https"
    )
    question: str | None = Field(
        default=None, max_length=2000, description="what to look for in them, in words"
    )


def internet_research(settings: ResearchSettings) -> Tool:
    async def run(args: ResearchArguments) -> ToolOutput:
        """Raises what `fetch` raises: what one page refuses is not made up for by another."""
        from unified_flow.retrieval.web.fetch import fetch

        # One after another: the first failure ends it, and is the one reported.
        known = current_caller().urls
        pages = [
            await fetch(url, settings, stays=without_fragment(url) not in known)
            for url in dict.fromkeys(args.urls)
        ]
        found = await in_daemon_thread(partial(best_passages, pages, args.question, PASSAGES))
        return ToolOutput(
            result={
                "query": args.question,
                "pages": [_shown(page) for page in pages],
                "passages": [passage.model_dump(mode="json") for passage in found],
            },
            claims=[claim(each.text, each.source(), each.score) for each in found],
        )

    return Tool(
        name=tool_names.INTERNET_RESEARCH,
        description="Fetch web pages by their addresses and find in them what bears on a question.",
        arguments=ResearchArguments,
        access=frozenset({Access.NETWORK}),
        run=run,
        timeout_s=MAX_URLS * settings.timeout_s + 10.0,
    )


def _shown(page: Page) -> dict[str, object]:
    return {
        "url": page.url,
        "final_url": page.final_url,
        "title": page.title,
        "content_type": page.content_type,
        "bytes": page.bytes,
        "fetched_at": f"{page.fetched_at:%Y-%m-%dT%H:%M:%SZ}",
    }
