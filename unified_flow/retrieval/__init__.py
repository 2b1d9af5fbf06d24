"""Retrieval: passages of the user's documents that answer a question."""

from __future__ import annotations

from typing import Protocol

from unified_flow.turns.passage import Passage


class Retriever(Protocol):
    def search(self, query: str, limit: int = 8) -> list[Passage]:
        """Passages, best first. Nothing found is []; a broken store raises RetrievalError."""
        ...
