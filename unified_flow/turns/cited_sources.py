"""Where in the documents an answer stands: what the turn has found, and what its citations cite."""

from __future__ import annotations

from collections.abc import Iterator

from unified_flow.config import tool_names
from unified_flow.turns.passage import Passage, path_of
from unified_flow.turns.results import Citation
from unified_flow.turns.turn import Turn


def searches(turn: Turn) -> Iterator[tuple[str, list[Passage], float]]:
    """Each search of the documents: what for, what it found, how long it took (ms)."""
    for done in turn.sections.coordinator:
        if done.tool == tool_names.DOC_SEARCH and isinstance(done.result, dict):
            passages = [Passage.model_validate(each) for each in done.result["passages"]]
            yield done.result["query"], passages, done.duration_ms


def section_of(citation: Citation, passages: list[Passage]) -> str:
    """The headings above what is cited; "" if it is in none of the passages."""
    cited = next((passage for passage in passages if _is_from(citation, passage)), None)
    return cited.heading if cited is not None else ""


def reference(chapter: str, section: str) -> str:
    """`chapter/section`, as Message.sources holds it (data-model.md, 1)."""
    return f"{chapter}/{section}" if section else chapter


def references_of(turn: Turn) -> list[str]:
    """Those of the answer's citations, each once."""
    passages = [passage for _, found, _ in searches(turn) for passage in found]
    cited = (
        reference(path_of(citation.source), section_of(citation, passages))
        for citation in turn.citations
    )
    return list(dict.fromkeys(cited))


def _is_from(citation: Citation, passage: Passage) -> bool:
    """The quote stands in the passage; a line alone could be that of a neighbour."""
    if path_of(citation.source) != passage.path:
        return False
    return citation.source == passage.source() or citation.quote in passage.text
