"""`doc.search`: passages of the user's documents for a question.

What the conversation is about weighs in: it comes with the caller, not with the plan.
"""

from __future__ import annotations

from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any

from pydantic import Field

from unified_flow.config import tool_names
from unified_flow.lib.text import language_of
from unified_flow.lib.threads import FewThreads, QuickWork
from unified_flow.tools import Access, Arguments, Tool, ToolOutput, claim, current_caller

if TYPE_CHECKING:
    from unified_flow.retrieval.documents import Documents

THREADS = 4  # an index is read by one at a time; the others wait for it
AVERAGED = 8
UNREAD = 5  # documents that a result names


class SearchArguments(Arguments):
    query: str = Field(min_length=1, max_length=2000, description="what to look for, in words")
    limit: int = Field(default=8, ge=1, le=50, description="how many passages at most")


def doc_search(documents: Documents, timeout_s: float = 30.0) -> Tool:
    """A result names what could not be read, and the languages of the documents if the query's is
    another."""
    # A thread keeps the time-out true for a store that hangs. By the wall clock each search in a
    # thread of a busy service would seem slow.
    threads = FewThreads(THREADS, tool_names.DOC_SEARCH)
    searches = QuickWork(threads.run, averaged=AVERAGED, expected=1, clock=thread_time)

    async def run(args: SearchArguments) -> ToolOutput:
        return await searches.run(partial(_found, documents, args), slow=documents.may_wait)

    return Tool(
        name=tool_names.DOC_SEARCH,
        description="Search the user's documents for passages about something.",
        arguments=SearchArguments,
        access=frozenset({Access.READS}),
        run=run,
        stage="retriever",
        timeout_s=timeout_s,
    )


def _found(documents: Documents, args: SearchArguments) -> ToolOutput:
    conversation = current_caller().conversation
    with documents.found(args.query, args.limit, conversation) as (reader, found):
        passages = [passage for passage, _ in reader.passages(found.ordered, args.limit)]
        known, left = reader.main_languages, reader.unread
    result: dict[str, Any] = {
        "query": args.query,
        "passages": [passage.model_dump(mode="json") for passage in passages],
    }
    if known and language_of(args.query, default=known[0]) not in known:
        result["languages"] = list(known)
    if left:
        more = [f"… {len(left) - UNREAD}"] if len(left) > UNREAD else []
        result["unread"] = [*left[:UNREAD], *more]
    return ToolOutput(
        result=result, claims=[claim(each.text, each.source(), each.score) for each in passages]
    )
