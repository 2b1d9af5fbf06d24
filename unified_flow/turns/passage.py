"""A passage of a document, how its place is written, and which passages a turn cites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interventions.secrets.redaction import redact_for_asker
from unified_flow.config import tool_names
from unified_flow.turns.results import Citation
from unified_flow.turns.sections import Sections
from unified_flow.turns.turn import Turn

_PLACE = re.compile(r"(?:#L|:p?)\d+\Z")


class Passage(BaseModel):
    """A chunk of a document that a search found.

    `path` is relative to the indexed root's parent where possible, or the address of a web page;
    `line` the first line of `text` (1-based; of a converted document, of its text as `file.read`
    shows it), `page` the page or slide (1-based) of a file that has them, `heading` the headings
    above it joined by " > ", `score` 0..1; `continues` says that the section of the passage before
    it in the document goes on.
    """

    model_config = ConfigDict(frozen=True)

    chunk_id: str
    path: str
    line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    heading: str = ""
    text: str
    score: float = Field(ge=0.0, le=1.0)
    page: int | None = Field(default=None, ge=1)
    continues: bool = False

    def source(self, offset: int = 0) -> str:
        """The place of `text[offset]`, as `source_of` writes it."""
        return source_of(self.path, self.line + self.text.count("\n", 0, offset), self.page)


def source_of(path: str, line: int, page: int | None) -> str:
    """`notes.md:12`, `report.pdf:p3` for page or slide 3, or `https://host/page#L12`, which still
    opens the page."""
    if page is not None:
        return f"{path}:p{page}"
    return f"{path}#L{line}" if "://" in path else f"{path}:{line}"


def path_of(source: str) -> str:
    """The path or address in what `source_of` gave."""
    return _PLACE.sub("", source)


def passages_in(result: Any) -> list[Passage]:
    """The passages in a search's result. Another tool's result may hold `passages` of its own."""
    found = result.get("passages") if isinstance(result, dict) else None
    passages: list[Passage] = []
    for raw in found if isinstance(found, list) else []:
        with suppress(ValidationError):
            passages.append(Passage.model_validate(raw))
    return passages


def searches(turn: Turn) -> Iterator[tuple[str, list[Passage], float]]:
    """Each search of the documents: its query, its passages, its duration in ms."""
    for done in turn.sections.coordinator:
        if done.tool == tool_names.DOC_SEARCH and isinstance(done.result, dict):
            yield done.result["query"], passages_in(done.result), done.duration_ms


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
    found = [passage for result in results for passage in passages_in(result.result)]
    if not found and turn.failure is not None:
        found = passages_in({"passages": turn.failure.retrieved})
    once = {passage.chunk_id: passage for passage in found}
    return sorted(once.values(), key=lambda passage: -passage.score)


def title_of(heading: str, source: str) -> str:
    """What stands above a passage in an answer."""
    return f"{heading} ({source})" if heading else f"({source})"


def reference(chapter: str, section: str) -> str:
    """`chapter/section`, as Message.sources holds it (data-model.md, 1)."""
    return f"{chapter}/{section}" if section else chapter


def references_of(turn: Turn) -> list[str]:
    """The references of the answer's citations, each once."""
    cited = (reference(path_of(each.source), each.heading) for each in turn.citations)
    return list(dict.fromkeys(cited))


def citation_for_asker(citation: Citation) -> Citation:
    words = citation.model_dump(include={"quote", "passage", "heading"})
    return citation.model_copy(update={k: redact_for_asker(text) for k, text in words.items()})
