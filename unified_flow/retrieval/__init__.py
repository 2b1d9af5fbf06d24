"""Retrieval: passages of the user's documents that answer a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from unified_flow.turns.passage import Passage


class Retriever(Protocol):
    def search(
        self, query: str, limit: int = 8, conversation: Mapping[str, float] | None = None
    ) -> list[Passage]:
        """Passages, best first. Nothing found is []; a broken store raises RetrievalError.

        `conversation` gives words of earlier turns, each with what it weighs beside a word of
        the question; it is there for a follow-up alone.
        """
        ...
