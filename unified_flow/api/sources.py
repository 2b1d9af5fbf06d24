"""The sources of an answer, as the ADR writes them: chapter, section, excerpt, relevance."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from unified_flow.turns.passage import Passage, path_of, public_text, searches, section_of
from unified_flow.turns.results import Citation
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.retrieved import QueryResult, query_result


class Source(BaseModel):
    model_config = ConfigDict(frozen=True)

    chapter_id: str = Field(description="the file")
    section_title: str = Field(description="the headings above the text, joined by ' > '")
    excerpt: str
    relevance_score: float = Field(ge=0.0, le=1.0)


def sources_of(turn: Turn) -> list[Source]:
    """One for each citation of the answer, in its order."""
    passages = [passage for _, found, _ in searches(turn) for passage in found]
    return [_source(citation, passages) for citation in turn.citations]


def source_of_passage(passage: Passage) -> Source:
    return Source(
        chapter_id=passage.path,
        section_title=passage.heading,
        excerpt=public_text(passage.text),
        relevance_score=passage.score,
    )


def retrievals_of(turn: Turn) -> list[QueryResult]:
    """What every search of the turn found."""
    results = []
    for query, passages, took_ms in searches(turn):
        clean = [
            passage.model_copy(update={"text": public_text(passage.text)}) for passage in passages
        ]
        results.append(query_result(public_text(query), clean, took_ms))
    return results


def number_retrieved(turn: Turn) -> int:
    """How many passages the turn has found, each once."""
    return len({passage.chunk_id for _, found, _ in searches(turn) for passage in found})


def _source(citation: Citation, passages: list[Passage]) -> Source:
    return Source(
        chapter_id=path_of(citation.source),
        section_title=section_of(citation, passages),
        excerpt=public_text(citation.quote),
        relevance_score=citation.score,
    )
