"""Finding passages in the user's documents. A vector store can stand beside FTS5 here."""

from __future__ import annotations

from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field


class Passage(BaseModel):
    """A chunk of a document that a search found.

    `path` is relative to the indexed root's parent where possible, `line` the first line of
    `text` (1-based), `heading` the headings above it joined by " > ", `score` 0..1.
    """

    model_config = ConfigDict(frozen=True)

    chunk_id: str
    path: str
    line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    heading: str = ""
    text: str
    score: float = Field(ge=0.0, le=1.0)


class Retriever(Protocol):
    def search(self, query: str, limit: int = 8) -> list[Passage]:
        """Passages, best first. Nothing found is []; a broken store raises RetrievalError."""
        ...
