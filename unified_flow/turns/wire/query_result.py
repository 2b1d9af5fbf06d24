"""QueryResult: what retrieval found for a question (data-model.md, 2).

In an index of files the chapter is the file and the section the heading. Scores are 0..1: the
index's own (`retrieval/bm25.score`, BM25 as a share of what a chunk could reach) are so by
themselves and monotone in BM25 for one question.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from unified_flow.turns.passage import Passage, source_of
from unified_flow.turns.wire import EXAMPLES, Wire

SHORTEST_MS = 0.001  # what a clock shows as nothing still took some time


class ChunkMetadata(Wire):
    chapter: str = Field(description="the file")
    section: str = Field(description="the headings above the text, joined by ' > '")
    page_url: str | None = Field(default=None, description="where it can be opened")


class RetrievedChunk(Wire):
    chunk_id: str
    text: str = Field(min_length=1)
    score: float = Field(ge=0.0, le=1.0)
    metadata: ChunkMetadata


class QueryResult(Wire):
    """`query_text` is normalized: lower case, trimmed. `retrieved_chunks` are best first."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLES["QueryResult"]})

    query_text: str
    retrieved_chunks: list[RetrievedChunk]
    total_results: int
    retrieval_time_ms: float = Field(gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.query_text != normalized(self.query_text):
            raise ValueError("query_text must be normalized: lower case and trimmed")
        scores = [chunk.score for chunk in self.retrieved_chunks]
        if scores != sorted(scores, reverse=True):
            raise ValueError("retrieved_chunks must be ordered by score, descending")
        if self.total_results != len(self.retrieved_chunks):
            raise ValueError("total_results must match retrieved_chunks length")
        return self


def normalized(query: str) -> str:
    return query.strip().lower()


def chunk_of(passage: Passage) -> RetrievedChunk:
    address = source_of(passage.path, passage.line, passage.page)
    return RetrievedChunk(
        chunk_id=passage.chunk_id,
        text=passage.text,
        score=passage.score,
        metadata=ChunkMetadata(
            chapter=passage.path,
            section=passage.heading,
            page_url=address if "://" in passage.path else None,
        ),
    )


def query_result(query: str, passages: Iterable[Passage], took_ms: float) -> QueryResult:
    """What a search found; passages without a text (none is indexed so) say nothing."""
    chunks = [chunk_of(passage) for passage in passages if passage.text]
    chunks.sort(key=lambda chunk: -chunk.score)
    return QueryResult(
        query_text=normalized(query),
        retrieved_chunks=chunks,
        total_results=len(chunks),
        retrieval_time_ms=max(took_ms, SHORTEST_MS),
    )
