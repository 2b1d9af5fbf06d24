"""What a turn has found in documents, and which of it its answer cites."""

from __future__ import annotations

from collections.abc import Iterator

from interventions.secrets.redaction import redact_for_asker
from unified_flow.config import tool_names
from unified_flow.turns.passage import Passage, passages_in, path_of, reference
from unified_flow.turns.results import Citation
from unified_flow.turns.sections import Sections
from unified_flow.turns.turn import Turn


def searches(turn: Turn) -> Iterator[tuple[str, tuple[Passage, ...], float]]:
    """Each search of the documents: its query, its passages, its duration in ms."""
    for done in turn.sections.coordinator:
        if done.tool == tool_names.DOC_SEARCH and isinstance(done.result, dict):
            yield done.result["query"], done.passages, done.duration_ms


def unread_in(sections: Sections) -> list[str]:
    """Documents that a search could not read, or not as a whole: `path: why`."""
    for done in sections.coordinator:
        match done.tool, done.result:
            case tool_names.DOC_SEARCH, {"unread": list(unread)}:
                return unread
    return []


def retrieved_passages(turn: Turn) -> list[Passage]:
    """The passages found for the question, best first: by the turn's own searches, else by the one
    beside its first phase."""
    results = [*turn.sections.coordinator, *turn.tools_done.values()]
    found = [passage for result in results for passage in result.passages]
    if not found and turn.failure is not None:
        found = passages_in({"passages": turn.failure.retrieved})
    once = {passage.chunk_id: passage for passage in found}
    return sorted(once.values(), key=lambda passage: -passage.score)


def references_of(turn: Turn) -> list[str]:
    """The references of the answer's citations, each once."""
    cited = (reference(path_of(each.source), each.heading) for each in turn.citations)
    return list(dict.fromkeys(cited))


def citation_for_asker(citation: Citation) -> Citation:
    words = citation.model_dump(include={"quote", "passage", "heading"})
    return citation.model_copy(update={k: redact_for_asker(text) for k, text in words.items()})
