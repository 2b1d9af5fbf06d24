from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from unified_flow.errors import RetrievalError, ToolArgumentError, ToolTimeoutError
from unified_flow.tools import MAX_CLAIM_CHARS, ToolOutput
from unified_flow.tools.builtin.doc_search import doc_search
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.passage import Passage
from unified_flow.turns.results import ToolRequest


class Shelf:
    """Documents that are a list, which is what the tool must not know."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.release = threading.Event()
        self.release.set()
        self.main_languages = ("en",)
        self.unread = ()
        self.may_wait = False
        self.searched_in: list[int] = []

    @contextmanager
    def found(
        self, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> Iterator[tuple[Shelf, SimpleNamespace]]:
        self.searched_in.append(threading.get_ident())
        self.release.wait()
        if query == "broken":
            raise RetrievalError("the index is not a database")
        yield self, SimpleNamespace(ordered=[text for text in self.texts if query in text])

    def passages(self, ordered: list[str], limit: int) -> list[tuple[Passage, int]]:
        return [
            (Passage(chunk_id="1", path="docs/a.md", line=n, end_line=n, text=text, score=1 / n), n)
            for n, text in enumerate(ordered[:limit], 1)
        ]


def search(shelf: Shelf, timeout_s: float = 30.0, **args: object) -> ToolOutput:
    box = Toolbox([doc_search(shelf, timeout_s)])
    return asyncio.run(box.call(*box.check(ToolRequest(tool="doc.search", args=args))))


def test_passages_and_one_claim_for_each() -> None:
    found = search(Shelf("a queue", "nothing", "the queue"), query="queue")
    assert found.result["query"] == "queue"
    assert [p["text"] for p in found.result["passages"]] == ["a queue", "the queue"]
    assert [(c.claim, c.confidence, c.source) for c in found.claims] == [
        ("a queue", 1.0, "docs/a.md:1"),
        ("the queue", 0.5, "docs/a.md:2"),
    ]
    json.dumps(found.result)


def test_nothing_found_is_a_result() -> None:
    found = search(Shelf("a queue"), query="monitor")
    assert (found.result["passages"], found.claims) == ([], [])


def test_the_limit_is_kept_and_bounded() -> None:
    shelf = Shelf(*["queue"] * 20)
    assert len(search(shelf, query="queue").claims) == 8
    assert len(search(shelf, query="queue", limit=3).claims) == 3
    for limit in (0, 51):
        with pytest.raises(ToolArgumentError, match="argument limit"):
            search(shelf, query="queue", limit=limit)
    with pytest.raises(ToolArgumentError, match="argument query"):
        search(shelf, query="")


def test_a_claim_is_bounded_and_the_passage_is_not() -> None:
    long = "queue " * 2000
    found = search(Shelf(long), query="queue")
    assert found.result["passages"][0]["text"] == long
    assert len(found.claims[0].claim) == MAX_CLAIM_CHARS
    assert found.claims[0].claim.endswith("…")


def test_a_broken_store_is_a_retrieval_error_and_never_nothing() -> None:
    with pytest.raises(RetrievalError, match="not a database"):
        search(Shelf(), query="broken")


def test_a_store_that_hangs_does_not_hold_the_turn() -> None:
    shelf = Shelf("queue")
    shelf.release.clear()

    async def run() -> None:
        box = Toolbox([doc_search(shelf, timeout_s=0.02)])
        try:
            with pytest.raises(ToolTimeoutError):
                await box.call(*box.check(ToolRequest(tool="doc.search", args={"query": "queue"})))
        finally:
            shelf.release.set()

    asyncio.run(run())


def test_a_quick_search_takes_no_thread_once_it_is_known_to_be_quick() -> None:
    """In a busy service the thread costs ten times as much. Nothing else may hold its loop."""
    shelf, loop = Shelf("queue"), threading.get_ident()

    async def run() -> None:
        box = Toolbox([doc_search(shelf)])
        for number in range(20):
            shelf.may_wait = number == 19
            await box.call(*box.check(ToolRequest(tool="doc.search", args={"query": "queue"})))

    asyncio.run(run())
    in_loop = [ident == loop for ident in shelf.searched_in]
    assert not in_loop[0]
    assert all(in_loop[9:19])
    assert not in_loop[19]


def test_its_failures_belong_to_the_retriever() -> None:
    assert doc_search(Shelf()).stage == "retriever"
